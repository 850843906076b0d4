"""What the failure of a Spark job means, by the words of real ones."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from frazil.errors import CatalogUnavailable, FrazilError, KafkaUnavailable, SparkFailed
from frazil.ingest.spark_errors import Cancelled, LoginRefused, TimestampOverflow, explained

MEMORY = "org.apache.spark.SparkException: Lost task 0.0 in stage 3.0 (TID 3) (h executor driver): java.lang.OutOfMemoryError: Java heap space"
LOGIN = "org.apache.kafka.common.errors.SslAuthenticationException: SSL handshake failed"
KAFKA = (
    "org.apache.kafka.common.errors.TimeoutException: Timeout of 60000ms expired before the position for partition t-0"
)
LAKE = "org.apache.iceberg.exceptions.ServiceFailureException: Server error: 503"
CONFLICT = "org.apache.iceberg.exceptions.CommitFailedException: Requirement failed: branch main has changed"
DISK = "java.io.IOException: No space left on device"
LONG_NAME = f"/lake/t/data/note={'x' * 600}/00000-1.parquet (File name too long)"
FILE = f"""org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times
org.apache.iceberg.exceptions.RuntimeIOException: Failed to create file
\tat org.apache.iceberg.spark.source.SparkWrite$DataWriter.<init>(SparkWrite.java:713)
java.io.FileNotFoundException: {LONG_NAME}"""
OTHER = "java.lang.ArithmeticException: divide by zero"
TIMESTAMP = "java.lang.ArithmeticException: long overflow"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (MEMORY, MemoryError),
        (LOGIN, LoginRefused),
        (KAFKA, KafkaUnavailable),
        (LAKE, CatalogUnavailable),
        (CONFLICT, CatalogUnavailable),
        (DISK, CatalogUnavailable),
        (FILE, SparkFailed),
        (OTHER, SparkFailed),
        (TIMESTAMP, TimestampOverflow),
    ],
)
def test_each_failure_becomes_its_error(text: str, error: type[Exception]) -> None:
    with pytest.raises(error), explained("pipeline p"):
        raise PySparkException(text)


def test_an_error_carries_the_complete_text_of_its_cause_and_names_no_catalog() -> None:
    with pytest.raises(SparkFailed) as caught, explained("pipeline p"):
        raise PySparkException(FILE)
    assert str(caught.value).startswith(f"pipeline p: a Spark job failed: java.io.FileNotFoundException: {LONG_NAME}")
    assert "catalog" not in str(caught.value)


def test_secrets_are_masked_before_the_cause_is_chosen() -> None:
    with (
        pytest.raises(SparkFailed, match="holds \\*\\*\\*"),
        explained("p", redact=lambda text: text.replace("s3cret", "***")),
    ):
        raise PySparkException("java.lang.IllegalStateException: holds s3cret")


def test_whatever_a_job_fails_with_while_the_run_ends_is_its_cancellation() -> None:
    with pytest.raises(Cancelled), explained("pipeline p", stopping=lambda: True):
        raise PySparkException(MEMORY)


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
