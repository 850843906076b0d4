"""What the failure of a Spark job means, by the words of real ones."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from frazil.errors import CatalogUnavailable, FrazilError, KafkaUnavailable, SparkFailed
from frazil.ingest.spark_errors import Cancelled, Failure, LoginRefused, TimestampOverflow, explained, meaning

MEMORY = [
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: "
    "Lost task 0.0 in stage 3.0 (TID 3) (h executor driver): java.lang.OutOfMemoryError: Java heap space",
    "org.apache.spark.memory.SparkOutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 65536 bytes of memory, got 0.",
    "ExecutorLostFailure (executor 7 exited caused by one of the running tasks) Reason: Command exited with code 52",
    "ExecutorLostFailure (executor 7 exited caused by one of the running tasks) Reason: Container killed with exit code 137",
    "Container killed by YARN for exceeding memory limits. 5.5 GB of 5.5 GB physical memory used",
]
LOGIN = [
    "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed during authentication due to invalid "
    "credentials with SASL mechanism SCRAM-SHA-256",
    "org.apache.kafka.common.errors.SslAuthenticationException: SSL handshake failed",
    "org.apache.kafka.common.KafkaException: javax.security.auth.login.LoginException: An internal error occurred while "
    "retrieving token from callback handler",
]
KAFKA = [
    "org.apache.kafka.common.errors.TimeoutException: Timeout of 60000ms expired before the position for partition t-0",
    "org.apache.spark.sql.kafka010.KafkaIllegalStateException: [KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Some data may have been lost",
]
LAKE = [
    "org.apache.iceberg.exceptions.ServiceFailureException: Server error: 503",
    "software.amazon.awssdk.services.s3.model.S3Exception: Access Denied (Service: S3, Status Code: 403)",
    "org.apache.iceberg.jdbc.UncheckedSQLException: Unknown failure",
    "java.net.UnknownHostException: lake.s3.eu-central-1.amazonaws.com",
]
TIMESTAMP = ["java.lang.ArithmeticException: long overflow"]
FRAMES = """org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times
java.lang.ArithmeticException: divide by zero
\tat java.base/java.lang.Math.floorMod(Math.java:1286)
\tat org.apache.spark.sql.kafka010.KafkaBatchPartitionReader.next(KafkaBatchPartitionReader.scala:68)
\tat org.apache.iceberg.spark.source.SparkWrite$DataWriter.<init>(SparkWrite.java:713)
\tat org.apache.iceberg.shaded.OutOfMemoryError$$Lambda/0x1.run(Unknown Source)
\t... 12 more"""
OTHER = [
    "java.lang.ArithmeticException: divide by zero",
    "",
    "java.lang.NullPointerException",
    "ExecutorLostFailure (executor 52 exited caused by one of the running tasks) Reason: Command exited with code 1",
    FRAMES,
]


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (failure, text)
        for failure, texts in (
            (Failure.MEMORY, MEMORY),
            (Failure.LOGIN, LOGIN),
            (Failure.KAFKA, KAFKA),
            (Failure.LAKE, LAKE),
            (Failure.TIMESTAMP, TIMESTAMP),
            (Failure.OTHER, OTHER),
        )
        for text in texts
    ],
)
def test_a_failure_is_known_by_its_words(failure: Failure, text: str) -> None:
    assert meaning(text) is failure


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (MEMORY[0], MemoryError),
        (LOGIN[0], LoginRefused),
        (KAFKA[0], KafkaUnavailable),
        (LAKE[0], CatalogUnavailable),
        (OTHER[0], SparkFailed),
        (FRAMES, SparkFailed),
        (TIMESTAMP[0], TimestampOverflow),
    ],
)
def test_each_failure_becomes_its_error(text: str, error: type[Exception]) -> None:
    with pytest.raises(error), explained("pipeline p"):
        raise PySparkException(text)


def test_whatever_a_job_fails_with_while_the_run_ends_is_its_cancellation() -> None:
    with pytest.raises(Cancelled), explained("pipeline p", stopping=lambda: True):
        raise PySparkException(MEMORY[0])


def test_an_error_that_is_none_of_sparks_is_left_alone() -> None:
    error = FrazilError("what")
    with pytest.raises(FrazilError) as caught, explained("pipeline p"):
        raise error
    assert caught.value is error


@pytest.mark.spark
def test_the_message_is_short_and_holds_the_cause(spark: SparkSession) -> None:
    with pytest.raises(SparkFailed) as caught, explained("pipeline p"):
        spark.sql("SELECT raise_error('the cause of it')").collect()
    assert "the cause of it" in str(caught.value)
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)


@pytest.mark.spark
def test_a_failed_task_tells_its_own_exception(spark: SparkSession) -> None:
    with pytest.raises(MemoryError), explained("pipeline p"):
        spark.range(4).selectExpr(
            "if(id = 3, raise_error('java.lang.OutOfMemoryError: Java heap space'), id)"
        ).write.format("noop").mode("overwrite").save()


@pytest.mark.spark
def test_a_value_that_fails_while_it_is_written_is_not_the_lakes_failure(spark: SparkSession) -> None:
    """Iceberg's classes are in the stack of every task that writes."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.failures")
    spark.sql("CREATE OR REPLACE TABLE lake.failures.numbers (id bigint) USING iceberg")
    rows = spark.range(4).selectExpr("if(id = 3, raise_error('not this one'), id) AS id")
    with pytest.raises(SparkFailed, match="not this one"), explained("pipeline p"):
        rows.writeTo("lake.failures.numbers").append()
