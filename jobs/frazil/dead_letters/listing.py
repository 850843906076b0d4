"""The open dead letters of a pipeline, newest first, and how many there are by reason; and how many have an outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from frazil.dead_letters.encrypted_bytes import is_encrypted
from frazil.declaration import Pipeline
from frazil.lake.read.scan import Where, rows
from frazil.lake.read.stored_tables import Lake, StoredTable

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("reason", "stage", "message", "schema_id", "run", "partition", "offset", "timestamp", "rejected_at", "key")
OF_OUTCOME = ("outcome", "outcome_reason", "attempts")
"""Columns that a table of an earlier release lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A rejected record without its value: why, its place in Kafka, its key, and who rejected it when. An encrypted key is None.

    `timestamp_ms` is its timestamp in milliseconds since 1970. `timestamp` is None also where that is not in the years 1 to 9999.
    `outcome` is None while it is open; `outcome_reason` is that of a discard, and `attempts` are replays that tried it.
    """

    partition: int
    offset: int
    reason: str
    stage: str
    message: str | None
    schema_id: int | None
    timestamp: datetime | None
    rejected_at: datetime | None
    run: str | None
    key: bytes | None = None
    timestamp_ms: int | None = None
    outcome: str | None = None
    outcome_reason: str | None = None
    attempts: int | None = None

    def document(self) -> dict[str, Any]:
        """Return it as JSON: times in ISO format, the key as hexadecimal digits."""
        document = {k: v.isoformat() if isinstance(v, datetime) else v for k, v in asdict(self).items()}
        return {**document, "key": None if self.key is None else self.key.hex()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The newest open dead letters that were asked for; `counts` are of all open ones, by reason, the most frequent first.

    `closed` counts those with an outcome, by outcome.
    """

    pipeline: str
    table: str
    letters: tuple[DeadLetter, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    closed: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The number of open dead letters that meet the conditions, listed or not."""
        return sum(self.counts.values())

    def document(self) -> dict[str, Any]:
        """Return the listing as JSON."""
        return {**asdict(self), "letters": [letter.document() for letter in self.letters], "total": self.total}


def listing(pipeline: Pipeline, lake: Lake, conditions: Sequence[Where] = (), *, limit: int = 50) -> Listing:
    """Return the newest `limit` open dead letters of a pipeline that meet conditions on `COLUMNS`.

    A pipeline that never ran has none. Values are not read; the other columns are read in batches, whatever their number.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    name = pipeline.table.dead_letters
    table = lake.table(name)
    if table is None:
        return Listing(pipeline=pipeline.name, table=name)
    order = [("rejected_at", "descending"), ("partition", "ascending"), ("offset", "descending")]
    newest: pa.Table | None = None
    counts, closed = Counter[str](), Counter[str]()
    for batch in rows(table, columns_of(table), conditions):
        if OF_OUTCOME[0] in batch.schema.names:
            outcome = batch.column(OF_OUTCOME[0])
            closed.update(one for one in outcome.drop_null().to_pylist())
            batch = batch.filter(pc.is_null(outcome))
        counts.update({one["values"]: one["counts"] for one in pc.value_counts(batch.column("reason")).to_pylist()})
        more = pa.Table.from_batches([batch])
        both = more if newest is None else pa.concat_tables([newest, more], promote_options="permissive")
        newest = both.take(pc.sort_indices(both, sort_keys=order)[:limit])
    return Listing(
        pipeline=pipeline.name,
        table=name,
        letters=tuple(
            DeadLetter(**{**row, "key": None if is_encrypted(row["key"]) else row["key"]})
            for row in (letters_of(newest) if newest is not None else ())
        ),
        counts=dict(sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))),
        closed=dict(sorted(closed.items())),
    )


def columns_of(table: StoredTable) -> tuple[str, ...]:
    """Return the columns of a dead letter, as far as the table has them."""
    return (*COLUMNS, *(name for name in OF_OUTCOME if name in table.layout.columns))


def letters_of(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Return rows of a dead-letter table as Python values, with `timestamp` and `timestamp_ms` as `DeadLetter` has them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    at = rows.column("timestamp")
    first, last = (pa.scalar(time.replace(tzinfo=UTC), at.type) for time in (datetime.min, datetime.max))
    is_in_python = pc.and_(pc.greater_equal(at, first), pc.less_equal(at, last))
    known = rows.set_column(rows.schema.get_field_index("timestamp"), "timestamp", pc.if_else(is_in_python, at, None))
    ms = (None if us is None else us // 1000 for us in at.cast(pa.int64()).to_pylist())
    return [{**row, "timestamp_ms": number} for row, number in zip(known.to_pylist(), ms, strict=True)]
