"""Spark as a reader of each contender's upsert table, in the session of Frazil."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import functions as F

from bench.contenders.product import driver
from bench.peers.state_topics import KEY, changes
from bench.topics import Job, NotWhatWasProducedError, Topic, Way


@contextmanager
def state_reader(job: Job) -> Iterator[Mapping[str, Way]]:
    """Read all columns of all rows. Before that, unmeasured, check the state, and read once to be warm."""
    with driver(job) as (shared, _):

        def scan(topic: Topic, table: str) -> Callable[[], int]:
            name, wanted = f"{shared.iceberg.name}.{table}", changes(topic)
            spark = shared.spark

            def read() -> int:
                spark.table(name).write.format("noop").mode("overwrite").save()
                return wanted.live

            found = tuple(spark.table(name).agg(F.count("id"), F.sum("id"), F.count_distinct(KEY)).collect()[0])
            if found != (expected := (wanted.live, wanted.ids, wanted.live)):
                raise NotWhatWasProducedError(f"{table}: rows, sum of ids and keys are {found}, not {expected}")
            read()
            return read

        yield {"scan": scan}
