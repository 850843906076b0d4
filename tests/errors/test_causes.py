"""The meaning of a failure, by the texts of real ones: the innermost cause decides."""

from __future__ import annotations

import pytest

from frazil.errors.causes import MOST_CHARACTERS, Failure, meaning, thrown_in, words

TASK = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: "
    "Lost task 0.3 in stage 3.0 (TID 9) (10.0.0.7 executor 1): "
)
WRITE = "org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to s3://lake/t. SQLSTATE: 58030\n"
PY4J = "An error occurred while calling o51.save.\n: "
S3_503 = (
    "software.amazon.awssdk.services.s3.model.S3Exception: Please reduce your request rate. (Service: S3, Status Code: 503, "
    "Request ID: A1) (SDK Attempt Count: 6)"
)
LONG_NAME = f"/lake/t/data/note={'x' * 300}/00000-1.parquet (File name too long)"
FRAMES = """
\tat org.apache.iceberg.spark.source.SparkWrite$DataWriter.write(SparkWrite.java:713)
\tat java.base/java.lang.Thread.run(Thread.java:840)"""

MEMORY = [
    TASK + "java.lang.OutOfMemoryError: Java heap space" + FRAMES,
    "org.apache.spark.memory.SparkOutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 65536 bytes of memory, got 0.",
    "ExecutorLostFailure (executor 7 exited caused by one of the running tasks) Reason: Command exited with code 52",
    "Container killed by YARN for exceeding memory limits. 5.5 GB of 5.5 GB physical memory used",
]
LOGIN = [
    "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed during authentication due to invalid "
    "credentials with SASL mechanism SCRAM-SHA-256",
    "org.apache.kafka.common.errors.SslAuthenticationException: SSL handshake failed\n"
    "Caused by: javax.net.ssl.SSLHandshakeException: PKIX path building failed\n"
    "Caused by: sun.security.provider.certpath.SunCertPathBuilderException: unable to find valid certification path",
    "org.apache.kafka.common.KafkaException: javax.security.auth.login.LoginException: An internal error occurred while "
    "retrieving token from callback handler",
]
KAFKA = [
    "org.apache.kafka.common.errors.TimeoutException: Timeout of 60000ms expired before the position for partition t-0",
    "org.apache.spark.sql.kafka010.KafkaIllegalStateException: [KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Some data may",
    TASK + "java.util.concurrent.TimeoutException: Cannot fetch record for offset 7 in 120000 milliseconds" + FRAMES,
    "org.apache.kafka.common.KafkaException: Failed to construct kafka consumer\n"
    "Caused by: org.apache.kafka.common.config.ConfigException: No resolvable bootstrap urls given in bootstrap.servers",
    "org.apache.kafka.common.KafkaException: Failed\nCaused by: java.net.UnknownHostException: broker-1",
]
LAKE = [
    "org.apache.iceberg.exceptions.RESTException: Unable to process (code: 429, type: null): Too many requests",
    "org.apache.iceberg.exceptions.CommitFailedException: no\njava.net.SocketTimeoutException: Read timed out",
    "com.google.cloud.storage.StorageException: 503 Service Unavailable",
    PY4J
    + TASK
    + "org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed\n"
    + FRAMES
    + f"\nCaused by: {S3_503}"
    + FRAMES,
    S3_503,
    "java.util.concurrent.RejectedExecutionException: Task java.util.concurrent.FutureTask@1 rejected from "
    "java.util.concurrent.ThreadPoolExecutor@2[Shutting down, pool size = 1, active threads = 1]",
    "org.apache.iceberg.exceptions.ServiceFailureException: Server error: NullPointerException: null",
    "org.apache.iceberg.exceptions.ServiceUnavailableException: Service unavailable: 503",
    "org.apache.iceberg.exceptions.CommitStateUnknownException: Server error: 502\nCannot determine whether the commit was "
    "successful or not, the underlying data files may or may not be needed.",
    "org.apache.iceberg.exceptions.CommitStateUnknownException: Cannot determine\n"
    "org.apache.iceberg.exceptions.ServiceFailureException: Server error: 504",
    "org.apache.iceberg.exceptions.NotAuthorizedException: Not authorized: token expired",
    "org.apache.iceberg.exceptions.ForbiddenException: Forbidden: principal may not write",
    "org.apache.iceberg.exceptions.RESTException: Error occurred while processing POST request\n"
    "org.apache.iceberg.shaded.org.apache.hc.core5.http.NoHttpResponseException: rest:8181 failed to respond",
    "software.amazon.awssdk.services.s3.model.S3Exception: Access Denied (Service: S3, Status Code: 403)",
    "software.amazon.awssdk.services.glue.model.GlueException: Rate exceeded (Service: Glue, Status Code: 400, Request ID: 2)",
    "java.lang.RuntimeException: Cannot load\nCaused by: software.amazon.awssdk.services.glue.model.ThrottlingException: Rate "
    "exceeded (Service: Glue, Status Code: 400, Request ID: 1)",
    "software.amazon.awssdk.services.glue.model.AccessDeniedException: no glue:GetTable (Service: Glue, Status Code: 400)",
    "software.amazon.awssdk.services.kms.model.KmsInternalException: failed (Service: Kms, Status Code: 500)",
    "software.amazon.awssdk.core.exception.SdkClientException: Unable to load credentials from any of the providers in the chain",
    "software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request\n"
    "Caused by: java.io.IOException: unexpected end of stream",
    "java.io.UncheckedIOException: java.io.IOException: Connection reset by peer",
    "java.net.UnknownHostException: lake.s3.eu-central-1.amazonaws.com",
    "org.apache.iceberg.exceptions.RuntimeIOException: Failed\njava.net.SocketTimeoutException: Read timed out",
    "java.net.ConnectException: Connection refused",
    "javax.net.ssl.SSLHandshakeException: Remote host terminated the handshake\n"
    "Caused by: java.io.EOFException: SSL peer shut down incorrectly",
    "javax.net.ssl.SSLHandshakeException: PKIX path building failed: "
    "sun.security.provider.certpath.SunCertPathBuilderException: unable to find valid certification path to requested target",
    "org.apache.iceberg.jdbc.UncheckedSQLException: Failed to execute\n"
    "org.sqlite.SQLiteException: [SQLITE_BUSY] The database file is locked (database is locked)",
    'org.postgresql.util.PSQLException: FATAL: password authentication failed for user "lake"',
    "org.postgresql.util.PSQLException: FATAL: sorry, too many clients already",
    "java.sql.SQLTransientConnectionException: pool - Connection is not available, request timed out after 30000ms.",
    "com.mysql.cj.jdbc.exceptions.CommunicationsException: Communications link failure",
]
DISK = [
    TASK + "java.io.IOException: No space left on device" + FRAMES,
    "org.apache.iceberg.exceptions.RuntimeIOException: Failed to create file\njava.io.FileNotFoundException: /l/t (No space left on device)",
    "org.sqlite.SQLiteException: [SQLITE_FULL]  Insertion failed because database is full (database or disk is full)",
]
CONFLICT = [
    "org.apache.iceberg.exceptions.CommitFailedException: Cannot commit shop.orders because Glue detected concurrent update\n"
    "software.amazon.awssdk.services.glue.model.ConcurrentModificationException: Update table failed (Service: Glue, Status Code: 400)",
    "org.apache.iceberg.exceptions.CommitFailedException: Requirement failed: branch main has changed: expected id 1 != 2",
]
TIMESTAMP = [TASK + "java.lang.ArithmeticException: long overflow" + FRAMES]
LONG = (
    TASK
    + "org.apache.iceberg.exceptions.RuntimeIOException: Failed to create file"
    + FRAMES
    + f"\nCaused by: java.io.FileNotFoundException: {LONG_NAME}"
    + FRAMES
    + "\n\nDriver stacktrace:"
)
OTHER = [
    LONG,
    "org.apache.iceberg.exceptions.RESTException: Unable to process (code: 413, type: null): Payload too large",
    "java.util.ConcurrentModificationException",
    "java.lang.ArithmeticException: divide by zero",
    "",
    "java.lang.NullPointerException",
    "ExecutorLostFailure (executor 52 exited caused by one of the running tasks) Reason: Command exited with code 1",
    WRITE
    + f"org.apache.iceberg.exceptions.RuntimeIOException: Failed to create file\njava.io.FileNotFoundException: {LONG_NAME}",
    "software.amazon.awssdk.services.s3.model.S3Exception: Your key is too long (Service: S3, Status Code: 400, Request ID: 1)",
    "software.amazon.awssdk.services.s3.model.NoSuchBucketException: The bucket does not exist (Service: S3, Status Code: 404)",
    "org.apache.iceberg.exceptions.RuntimeIOException: Failed to write manifest\n"
    "java.lang.IllegalArgumentException: Cannot encode decimal with precision 15 as max precision 14",
    "org.apache.avro.AvroTypeException: Cannot encode decimal with precision 15 as max precision 14",
    "org.apache.iceberg.exceptions.ValidationException: Cannot find source column for partition field: 1000",
    "org.apache.iceberg.exceptions.BadRequestException: Malformed request: timed out value",
    "org.apache.iceberg.exceptions.CommitStateUnknownException: Cannot determine\njava.lang.NullPointerException: null",
    "org.apache.kafka.common.KafkaException: Received exception when fetching the next record from t-0. If needed, please seek "
    "past the record to continue consumption.\nCaused by: java.io.IOException: Corrupt frame",
    "org.postgresql.util.PSQLException: ERROR: value too long for type character varying(1000)",
    # The value of a record quotes an outage.
    'org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] The value "java.net.ConnectException: refused, Status '
    'Code: 503" of the type "STRING" cannot be cast',
    "java.lang.IllegalStateException: read timed out value",
    # A suppressed exception is no cause.
    "java.lang.IllegalStateException: Not closed"
    + FRAMES
    + "\n\tSuppressed: java.net.SocketTimeoutException: Read timed out\n\t\tat java.base/java.lang.Thread.run(Thread.java:840)",
]


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        pytest.param(failure, text, id=f"{failure}-{number}")
        for failure, texts in (
            (Failure.MEMORY, MEMORY),
            (Failure.LOGIN, LOGIN),
            (Failure.KAFKA, KAFKA),
            (Failure.LAKE, LAKE),
            (Failure.DISK, DISK),
            (Failure.CONFLICT, CONFLICT),
            (Failure.TIMESTAMP, TIMESTAMP),
            (Failure.OTHER, OTHER),
        )
        for number, text in enumerate(texts)
    ],
)
def test_the_innermost_cause_decides(failure: Failure, text: str) -> None:
    assert meaning(text) is failure


def test_only_services_and_full_disks_are_waited_for() -> None:
    assert {failure for failure in Failure if failure.is_outage} == {
        Failure.LOGIN,
        Failure.KAFKA,
        Failure.LAKE,
        Failure.DISK,
    }


def test_the_innermost_cause_is_said_completely() -> None:
    said = words(PY4J + LONG)
    assert said == f"java.io.FileNotFoundException: {LONG_NAME}"


def test_a_message_of_several_lines_becomes_one_line() -> None:
    text = "java.lang.RuntimeException: no\nCaused by: org.apache.iceberg.exceptions.ValidationException: Invalid:\n  - a\n  - b"
    assert words(text) == "org.apache.iceberg.exceptions.ValidationException: Invalid: - a - b"


def test_a_cause_without_a_message_is_said_with_the_one_around_it() -> None:
    text = (
        "java.lang.RuntimeException: writing column note"
        + FRAMES
        + "\nCaused by: java.lang.NullPointerException"
        + FRAMES
    )
    assert words(text) == "java.lang.RuntimeException: writing column note caused by java.lang.NullPointerException"


def test_the_plan_of_an_analysis_that_failed_is_no_part_of_its_cause() -> None:
    what = '[DATATYPE_MISMATCH.X] Cannot resolve "from_json(a)" due to data type mismatch. SQLSTATE: 42K09'
    name = "org.apache.spark.sql.catalyst.ExtendedAnalysisException"
    assert words(f"{name}: {what};\n'Project [a#1, 'b]\n+- LogicalRDD [value#2], false\n") == f"{name}: {what}"
    assert words(f"{name}: {what};\nProject [a#1]\n+- Filter x\n") == f"{name}: {what}"
    assert words(f"{name}: {what}; line 1 pos 0") == f"{name}: {what}; line 1 pos 0"


def test_a_text_without_an_exception_says_its_last_line() -> None:
    assert words("one\ntwo") == "two"
    assert words("") == "no message"


def test_only_a_cause_of_thousands_of_characters_is_cut_and_says_so() -> None:
    said = words(f"java.lang.IllegalStateException: {'x' * 2 * MOST_CHARACTERS}")
    assert len(said) < MOST_CHARACTERS + 50
    assert said.endswith(" more characters)")


def test_the_chain_has_the_outermost_first() -> None:
    assert [one.simple for one in thrown_in(PY4J + LONG)] == [
        "SparkException",
        "RuntimeIOException",
        "FileNotFoundException",
    ]
