"""A job that is asked to end ends between two steps, also if the request reaches Spark's JVM only.

With spark-submit the JVM is the parent, and the signal that stops a container's first process reaches only the JVM. Python
would only see that its JVM no longer runs, in the middle of a batch: that loses nothing, and the batch is done again. EMR
Serverless names the JVM's shutdown hooks as what has the grace period:
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/job-cancellation-grace-period.html
"""

from __future__ import annotations

import threading
from typing import Any

LONGEST_SECONDS = 1800
"""How long the JVM waits for the job at most: the longest grace there is. Whoever asked has a shorter one in mind, or not."""
_BEFORE_SPARK = 1000  # hooks with a higher priority are run first; Spark ends its own session at 50


class _Hook:
    """Java's `Runnable`, called in a thread of the JVM that ends."""

    def __init__(self, stopping: threading.Event) -> None:
        self._stopping = stopping

    def run(self) -> None:
        """Ask the job to end, and keep the JVM until this process has ended, which ends the call too."""
        self._stopping.set()
        threading.Event().wait(LONGEST_SECONDS)

    class Java:
        """What py4j reads."""

        implements = ("java.lang.Runnable",)


def heed_the_jvm(spark: Any, stopping: threading.Event) -> None:
    """Set `stopping` when Spark's JVM is asked to end, and let it end only after this process has."""
    from pyspark import SparkContext, java_gateway

    callbacks: Any = java_gateway
    callbacks.ensure_callback_server_started(SparkContext._gateway)
    jvm = spark._jvm
    hook = jvm.java.lang.Thread(_Hook(stopping))  # has Java's own hashCode, by which hooks are kept
    jvm.org.apache.hadoop.util.ShutdownHookManager.get().addShutdownHook(
        hook, _BEFORE_SPARK, LONGEST_SECONDS, jvm.java.util.concurrent.TimeUnit.SECONDS
    )
