"""The Spark session that lands and keeps tables: one per driver, for all its pipelines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from frazil.declaration.environment import Environment
from frazil.lake.catalogs import Resolve, spark_options

# What no log, plan or page of Spark may show; Spark's own default leaves out keys and JAAS lines.
REDACT = "(?i)secret|password|passwd|token|access[._-]?key|credential|jaas|keystore|private"


def session(
    environment: Environment,
    resolve: Resolve,
    *,
    name: str,
    jars: Sequence[Path] = (),
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start the session. On EMR `jars` and `master` come from the job run; locally they are given.

    `settings` are further Spark settings and win over these. Times are UTC; pipelines share the cores fairly.
    """
    builder = SparkSession.builder.appName(name)
    if master:
        builder = builder.master(master)
    if jars:
        builder = builder.config("spark.jars", ",".join(str(jar) for jar in jars))
    chosen = {
        "spark.sql.session.timeZone": "UTC",
        "spark.scheduler.mode": "FAIR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.redaction.regex": REDACT,
        "spark.sql.redaction.options.regex": f"{REDACT}|url",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.adaptive.enabled": "false",  # the plans have no shuffle; adaptivity only delays them
        "spark.sql.ui.retainedExecutions": "1",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.ui.retainedTasks": "100",
        **spark_options(environment, resolve),
        **(settings or {}),
    }
    for key, value in chosen.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
