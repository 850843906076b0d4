"""What the failure of a Spark job means for the batch that it worked on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from frazil.errors import CatalogUnavailable, KafkaUnavailable, SparkFailed
from frazil.lake.commit.row_search import SearchFailed
from frazil.lake.iceberg_java import error_text

_LONGEST = 400  # characters of Spark's own words in a message


class Failure(StrEnum):
    """What a failed job means.

    `MEMORY`: a task died of memory, a smaller batch may do. `LOGIN`: the executors' login to Kafka was refused, secrets may
    have been rotated. `KAFKA`: records could not be fetched: the broker is unavailable, or they no longer exist, which the next
    plan finds out. `LAKE`: the catalog or the object store refused or did not answer. `TIMESTAMP`: a record has a timestamp that
    Spark's Kafka source cannot hold. `OTHER`: no retry would help.
    """

    MEMORY = "memory"
    LOGIN = "login"
    KAFKA = "kafka"
    LAKE = "lake"
    TIMESTAMP = "timestamp"
    OTHER = "other"


class LoginRefused(KafkaUnavailable):
    """The executors' login to Kafka was refused; the secrets are to be read again."""


class TimestampOverflow(SparkFailed):
    """A record has a timestamp that Spark's Kafka source cannot hold; the driver must read it."""


class Cancelled(Exception):
    """The job was cancelled, as the run is to end. Its files are in no snapshot."""


# The words of exceptions, in the order in which they are looked for. 137 is a process killed by the kernel or the cluster
# for its memory, 52 Spark's own exit code of an executor that ran out of heap (`SparkExitCode.OOM`).
_WORDS = (
    (
        Failure.MEMORY,
        r"OutOfMemoryError|UNABLE_TO_ACQUIRE_MEMORY|exceeding memory limits|"
        r"ExecutorLostFailure[^\n]*(code:? (137|52)\b|\bOOM)",
    ),
    (
        Failure.LOGIN,
        r"SaslAuthenticationException|SslAuthenticationException|SASL authentication failed|SSL handshake failed|"
        r"security\.auth\.login\.LoginException",
    ),
    (
        Failure.KAFKA,
        r"org\.apache\.kafka\.|KAFKA_DATA_LOSS|KafkaIllegalStateException|could not fetch|Cannot fetch offset",
    ),
    (
        Failure.LAKE,
        r"org\.apache\.iceberg\.|software\.amazon\.awssdk|java\.sql\.|org\.sqlite\.|"
        r"java\.net\.(UnknownHost|Connect|NoRouteToHost|SocketTimeout)Exception",
    ),
    (Failure.TIMESTAMP, r"\blong overflow\b"),
)


def meaning(text: str) -> Failure:
    """Return what a failure means, by the text of its exceptions, causes included.

    Stack frames do not count: whatever fails while it writes has Iceberg's classes among them.
    """
    messages = "\n".join(_without_frames(text))
    return next((failure for failure, words in _WORDS if re.search(words, messages, re.IGNORECASE)), Failure.OTHER)


@contextmanager
def explained(
    where: str,
    *,
    stopping: Callable[[], bool] = lambda: False,
    redact: Callable[[str], str] = lambda text: text,
) -> Iterator[None]:
    """Turn what a Spark job in the block fails with into `MemoryError`, `LoginRefused`, `KafkaUnavailable`,
    `CatalogUnavailable`, `Cancelled` (while `stopping`), `TimestampOverflow` or `SparkFailed`. `redact` masks secrets, before the
    text is cut.
    """
    try:
        yield
    except (Py4JJavaError, PySparkException, SearchFailed) as failed:
        error = failed.error if isinstance(failed, SearchFailed) else failed
        text = redact(error_text(error))
        words = _short(text)
        if stopping():
            raise Cancelled(words) from None
        match meaning(text):
            case Failure.MEMORY:
                raise MemoryError(f"a task died of memory: {words}") from None
            case Failure.LOGIN:
                raise LoginRefused(f"the executors' login was refused: {words}", where=where) from None
            case Failure.KAFKA:
                raise KafkaUnavailable(
                    f"records could not be fetched: {words}",
                    where=where,
                    do="Check that the executors reach the brokers and may READ the topic",
                ) from None
            case Failure.LAKE:
                raise CatalogUnavailable(
                    f"the catalog or the object store failed: {words}",
                    where=where,
                    do="Nothing of this batch was added. Run again; if it persists, look at the catalog and its permissions",
                ) from None
            case failure:
                kind = TimestampOverflow if failure is Failure.TIMESTAMP else SparkFailed
                raise kind(f"a Spark job failed: {words}", where=where, do="Nothing was published") from None


def _without_frames(text: str) -> list[str]:
    """Return the lines that are not stack frames."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not re.match(r"at [\w$./<>-]+\(|\.\.\. \d+ more$", line)]


def _short(text: str) -> str:
    """Return the line that says most, the innermost exception's, cut. Secrets must be masked before: half of one is no match."""
    lines = _without_frames(text)
    causes = [line for line in lines if "Exception" in line or "Error" in line]
    return " ".join((causes or lines or ["no message"])[-1].split())[:_LONGEST]
