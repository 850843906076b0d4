"""The Spark session that lands and keeps tables: one per driver, for all its pipelines."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from frazil.declaration.environment import Environment
from frazil.errors import JvmEnded
from frazil.lake.catalogs import Resolve, is_secret, java_properties, make_folder, spark_options
from frazil.lake.java_classes import LookedUpOnce
from frazil.schemas.avro import JVM_PROPERTIES

# What no log, plan or page of Spark may show; Spark's own default omits keys and JAAS lines.
REDACT = "(?i)secret|password|passwd|token|access[._-]?key|credential|jaas|keystore|private"


_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""A local master has no executors elsewhere. Spark would look up the machine's names, and serve on its other addresses."""
START_SECONDS = 300.0  # until a JVM that does not come up is given up; it takes 3 to 20 on a busy machine
_OF_A_LOST_JVM = (Py4JError, OSError, AttributeError, TypeError)  # what py4j raises for a peer that is gone


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

    `settings` are further Spark settings and win over these. Times are UTC; pipelines share the cores fairly. The folder of a
    local catalog is created. Raises `FrazilError` if that fails, `JvmEnded` if Spark's JVM ends or does not come up.
    """
    # py4j prints tracebacks of a lost JVM on stderr if no logger handles them.
    logging.getLogger().addHandler(logging.NullHandler())
    make_folder(environment)
    builder = SparkSession.builder
    catalog = spark_options(environment, resolve)
    chosen = {
        "spark.app.name": name,
        **({"spark.master": master} if master else {}),
        **(_LOOPBACK if (master or "").startswith("local") else {}),
        **({"spark.jars": ",".join(str(jar) for jar in jars)} if jars else {}),
        "spark.sql.session.timeZone": "UTC",
        "spark.scheduler.mode": "FAIR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.redaction.regex": REDACT,
        "spark.sql.redaction.options.regex": f"{REDACT}|url",
        "spark.sql.ansi.enabled": "true",
        # HotSpot interprets a method of more than 8,000 bytes. Spark's default, 65,535, allows such methods: nested JSON cost 1.8
        # times the CPU. Above this limit Spark generates code for each operator, in short methods.
        "spark.sql.codegen.hugeMethodLimit": "8000",
        "spark.sql.adaptive.enabled": "false",  # the plans have no shuffle; adaptivity only delays them
        # The place in our code that made a column, for messages: eight calls into the JVM for each of hundreds of columns.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # A consumer for each partition of all topics is kept between batches; with Spark's 64, 1,000 partitions keep none.
        "spark.kafka.consumer.cache.capacity": "2048",
        # Records that were fetched are kept with it, read ones too, for five minutes: a gigabyte and more with 1,000 partitions.
        "spark.kafka.consumer.fetchedData.cache.timeout": "10s",
        "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "5s",
        "spark.sql.ui.retainedExecutions": "1",
        # How each job's plan is described in its events; the default, `formatted`, takes 4% of the CPU of a small batch.
        "spark.sql.ui.explainMode": "simple",
        # A batch of an upsert table is kept and read twice: encoding it takes a tenth of the CPU.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.ui.retainedTasks": "100",
        # A secret's option must be known from the start all the same: Spark redacts no other in the events of jobs.
        **{key: _SET_LATER if is_secret(key) else value for key, value in catalog.items()},
        **(settings or {}),
    }
    properties = {**JVM_PROPERTIES, **_token_endpoint(environment)}
    for option in _JAVA_OPTIONS:
        chosen[option] = _java_options(chosen.get(option, ""), properties)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    secret_properties = java_properties(environment, resolve)
    try:
        _start_jvm(chosen)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        _limit_this_jvm(spark, properties)
        _look_up_functions_once(spark)
        if str(spark.sparkContext.master).startswith("local"):
            spark.sparkContext.pythonExec = sys.executable  # else its workers are the PATH's `python3`
        _set_secrets(spark, catalog, secret_properties)
    except (*_OF_A_LOST_JVM, PySparkRuntimeError) as error:
        if _answers(SparkContext._jvm):
            raise
        raise JvmEnded.of() from error
    return spark


def _start_jvm(settings: Mapping[str, str]) -> None:
    """Start Spark's JVM, unless one runs. PySpark waits without end for one that hangs, or ends without an error."""
    if SparkContext._gateway is not None:
        return
    launch: Any = launch_gateway
    started: list[Any] = []
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))

    def start() -> None:
        with suppress(PySparkRuntimeError):  # it ended
            started.append(launch(conf))

    thread = threading.Thread(target=start, daemon=True, name="spark-jvm")
    thread.start()
    thread.join(START_SECONDS)
    if not started:
        raise JvmEnded.of()
    SparkContext._ensure_initialized(gateway=started[0])


def _set_secrets(spark: SparkSession, catalog: Mapping[str, str], properties: Mapping[str, str]) -> None:
    """Give the running session its secrets: they must not be an argument of its process, nor be listed with its settings."""
    for key, value in catalog.items():
        if is_secret(key):
            spark.conf.set(key, value)
    for name, value in properties.items():
        cast(Any, spark._jvm).java.lang.System.setProperty(name, value)


_FUNCTIONS = "org.apache.spark.sql.functions"
_CLASSES_OF_COLUMNS = {
    "functions": _FUNCTIONS,
    _FUNCTIONS: _FUNCTIONS,
    "PythonUtils": "org.apache.spark.api.python.PythonUtils",
}
_SET_LATER = "set later"
_JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")


def _token_endpoint(environment: Environment) -> dict[str, str]:
    """Return the system property without which Kafka's clients of version 4 ask no token endpoint."""
    oauth = environment.kafka.oauth
    return {"org.apache.kafka.sasl.oauthbearer.allowed.urls": oauth.token_endpoint} if oauth else {}


def _java_options(given: str, properties: Mapping[str, str] = JVM_PROPERTIES) -> str:
    """Return the options of a JVM with these system properties, but for those that are given."""
    limits = (f"-D{name}={value}" for name, value in properties.items() if f"-D{name}=" not in given)
    return " ".join([given, *limits]).strip()


def _limit_this_jvm(spark: SparkSession, properties: Mapping[str, str]) -> None:
    """Set the same properties for a driver's JVM that was running before its settings were known, as on EMR."""
    jvm = cast(Any, spark._jvm)
    for name, value in properties.items():
        if jvm.java.lang.System.getProperty(name) is None:
            jvm.java.lang.System.setProperty(name, value)


def _look_up_functions_once(spark: SparkSession) -> None:
    """Give PySpark the classes whose methods make columns, by the names that it asks for.

    Without them each call of a function of columns is three calls into the JVM, and a batch has hundreds. One of the three
    searches the class in each package that PySpark imports.
    """
    view = cast(Any, spark._jvm)
    for name, full_name in _CLASSES_OF_COLUMNS.items():
        setattr(view, name, LookedUpOnce(full_name, view._gateway_client))


def infer_no_constraints(spark: SparkSession) -> None:
    """Have the session's optimizer derive no constraints from now on, as change data needs.

    A filter on n columns, then a projection that renames them: the optimizer derives 2^n constraints, and ends without memory at 20
    columns. Other tables keep what it infers: it saves about 5 % of their CPU (three quiet benches of nested Avro).
    """
    spark.conf.set("spark.sql.constraintPropagation.enabled", "false")


def jvm_answers(spark: SparkSession) -> bool:
    """Return whether the session's JVM still runs."""
    return _answers(spark._jvm)


def _answers(jvm: Any) -> bool:
    try:
        jvm.java.lang.System.nanoTime()
    except _OF_A_LOST_JVM:
        return False
    return True


def end(spark: SparkSession) -> None:
    """Stop the session, also if its JVM has ended before."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # that the JVM could not be shut down cleanly
            spark.stop()
    except Exception:
        if jvm_answers(spark):
            raise
