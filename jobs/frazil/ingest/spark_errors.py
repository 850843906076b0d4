"""The meaning of a Spark job's failure for the batch that it worked on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from frazil.errors import CatalogUnavailable, KafkaUnavailable, SparkFailed
from frazil.errors.causes import Failure, meaning
from frazil.errors.causes import words as words_of
from frazil.lake.commit.replaced_rows import SearchFailed
from frazil.lake.iceberg_java import error_text


class LoginRefused(KafkaUnavailable):
    """The executors' login to Kafka was refused; the secrets are to be read again."""


class TimestampOverflow(SparkFailed):
    """A record has a timestamp that Spark's Kafka source cannot hold; the driver must read it."""


class Cancelled(Exception):
    """The job was cancelled, as the run is to end. Its files are in no snapshot."""


@contextmanager
def explained(
    where: str,
    *,
    stopping: Callable[[], bool] = lambda: False,
    redact: Callable[[str], str] = lambda text: text,
) -> Iterator[None]:
    """Turn what a Spark job in the block fails with into `MemoryError`, `LoginRefused`, `KafkaUnavailable`,
    `CatalogUnavailable`, `Cancelled` (while `stopping`), `TimestampOverflow` or `SparkFailed`, with the complete text of the
    innermost cause (`errors.causes` decides). `redact` masks secrets.
    """
    try:
        yield
    except (Py4JJavaError, PySparkException, SearchFailed) as failed:
        error = failed.error if isinstance(failed, SearchFailed) else failed
        text = redact(error_text(error))
        words = words_of(text)
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
            case Failure.LAKE | Failure.CONFLICT:
                raise CatalogUnavailable(
                    f"the catalog or the object store failed: {words}",
                    where=where,
                    do="Nothing of this batch was added. Run again; if it persists, look at the catalog and its permissions",
                ) from None
            case Failure.DISK:
                raise CatalogUnavailable(
                    f"a disk is full: {words}",
                    where=where,
                    do="Nothing of this batch was added. Free space, then run again",
                ) from None
            case failure:
                kind = TimestampOverflow if failure is Failure.TIMESTAMP else SparkFailed
                raise kind(f"a Spark job failed: {words}", where=where, do="Nothing was published") from None
