"""Open a job: its Spark session, its clients, and the name of its run."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from frazil.clients.kafka import Kafka
from frazil.clients.secrets import Secrets
from frazil.declaration.environment import Environment
from frazil.errors import JvmEnded
from frazil.job.context import JobContext
from frazil.job.failpoints import Failpoints
from frazil.job.turns import Turns
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.spark_session import end, jvm_answers, session
from frazil.version import VERSION

CANCEL_SECONDS = 0.5  # how often Spark's jobs are cancelled while a job stops: one may just have been submitted


@contextmanager
def open_job(
    environment: Environment,
    secrets: Secrets,
    *,
    name: str = "frazil",
    jars: Sequence[Path] = (),
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    failpoints: str = "",
    stopping: threading.Event | None = None,
    run_prefix: str = "",
    cancels: bool = True,
) -> Iterator[JobContext]:
    """Open a Spark session and clients, and close them at the end of the block.

    `name` is the session's in Spark's own pages. The name of the run begins with `run_prefix`, and is unique. Once `stopping` is
    set, the job ends between two steps; with `cancels`, Spark's jobs are cancelled too, which fits jobs that only stage files.
    Raises `JvmEnded` if Spark's JVM ends, at the start too.
    """
    spark = session(environment, secrets.read, name=name, jars=jars, master=master, settings=settings)
    stop = stopping or threading.Event()
    jvm: Any = spark._jvm

    def wait(seconds: float) -> None:
        stop.wait(seconds)

    ended = threading.Event()
    if cancels:
        threading.Thread(target=_cancel_jobs, args=(spark, stop, ended), daemon=True, name="stopping").start()
    try:
        yield JobContext(
            spark=spark,
            iceberg=Iceberg(spark, environment.catalog.name),
            kafka=Kafka(environment.kafka, secrets),
            run=run_name(run_prefix, now=time.time(), unique_id=uuid.uuid4().hex),
            version=VERSION,
            clock=time.time,
            wait=wait,
            new_id=lambda: uuid.uuid4().hex,
            failpoint=Failpoints(failpoints, lambda: int(jvm.java.lang.ProcessHandle.current().pid())),
            stopping=stop.is_set,
            stop=stop.set,
            turns=Turns(max(int(spark.sparkContext.defaultParallelism), 2)),
            redact=secrets.redactor.redact,
            secret=secrets.read,
        )
    except (Py4JError, OSError, AttributeError, TypeError) as error:
        if stop.is_set() or jvm_answers(spark):
            raise
        raise JvmEnded.of() from error
    finally:
        ended.set()
        end(spark)


def _cancel_jobs(spark: SparkSession, stopping: threading.Event, ended: threading.Event) -> None:
    """End Spark's jobs once the run is to stop. They only stage files; a commit is no Spark job, and is let finish."""
    while not stopping.wait(CANCEL_SECONDS):
        if ended.is_set():
            return
    while not ended.wait(CANCEL_SECONDS):
        try:
            spark.sparkContext.cancelAllJobs()
        except (Py4JError, OSError):  # the JVM ended, and its jobs with it
            return


_TIME_DIGITS = 12


def run_name(prefix: str, *, now: float, unique_id: str) -> str:
    """Return the name of a run that begins now, in seconds since 1970. `unique_id` has 32 hexadecimal digits."""
    return f"{prefix}{round(now * 1000):0{_TIME_DIGITS}x}{unique_id[_TIME_DIGITS:]}"


LONGEST_SECONDS = 1800
"""The longest time that the JVM waits for the job: the longest grace. Whoever asks for the end may wait for a shorter time."""
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
        """The interface that py4j reads."""

        implements = ("java.lang.Runnable",)


def heed_the_jvm(spark: Any, stopping: threading.Event) -> None:
    """Set `stopping` when Spark's JVM is asked to end, and let it end only after this process has.

    With spark-submit the JVM is the parent, and a signal to a container's first process reaches only the JVM. Python would see that
    its JVM no longer runs, in the middle of a batch. EMR Serverless gives the grace period to the JVM's shutdown hooks:
    https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/job-cancellation-grace-period.html
    """
    from pyspark import SparkContext, java_gateway

    callbacks: Any = java_gateway
    callbacks.ensure_callback_server_started(SparkContext._gateway)
    jvm = spark._jvm
    hook = jvm.java.lang.Thread(_Hook(stopping))  # has Java's own hashCode, by which hooks are kept
    jvm.org.apache.hadoop.util.ShutdownHookManager.get().addShutdownHook(
        hook, _BEFORE_SPARK, LONGEST_SECONDS, jvm.java.util.concurrent.TimeUnit.SECONDS
    )
