"""The expected content of a topic's table, from the records as they were sent: counts, and sums that a row of an older record changes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

import duckdb

from bench.bodies import POOL, drawn
from bench.fill import key, last_records, tail_of
from bench.shapes import SHAPES
from bench.topics import Topic

Contents = tuple[int, ...]


def found(files: Sequence[str], topic: Topic, columns: Collection[str]) -> Contents:
    """Return what the data files of a topic's table hold, as `wanted` names it."""
    place = "(_kafka_partition, _kafka_offset)" if "_kafka_offset" in columns else "id"
    asked = ["count(*)", "sum(id)", f"count(distinct {place})"]
    if topic.key_schema_id:
        asked += ["sum(_kafka_offset)", "sum(round(total * 100)::BIGINT)"]
    rows = duckdb.sql(f"SELECT {', '.join(asked)} FROM read_parquet($files)", params={"files": list(files)}).fetchone()
    assert rows is not None
    return rows


@lru_cache
def wanted(topic: Topic, *, seed: int, state: bool = False) -> Contents:
    """Return rows, the sum of ids, and distinct records; of a topic of changes also the sums of offsets and of totals, in cents.

    A topic of changes has the id of a row in each of its changes, so ids do not say which change a row is of. The offset of an older
    change of a key is always lower. `state` is that of the last change of each key.
    """
    if not topic.key_schema_id:
        return topic.rows, topic.rows * (topic.rows - 1) // 2, topic.rows
    rows = drawn(SHAPES[topic.shape], seed=seed, size=min(POOL, topic.rows))
    cents = [round(row["total"] * 100) for row in rows]
    if state:
        left = last_records(topic, topic.rows)
        ids, records, written = list(left), list(left.values()), list(left.values())
    else:
        changes = [key(topic, number) for number in range(topic.rows)]
        ids, records = [each for each, _ in changes], list(range(topic.rows))
        written = [number for number, (_, is_delete) in enumerate(changes) if not is_delete]
    offsets = sum(number // topic.partitions for number in records)
    totals = sum(cents[tail_of(topic, number, len(cents))] for number in written)
    return len(ids), sum(ids), len(ids), offsets, totals
