"""Lead from a row to its Kafka record, and from an offset to the fate of its record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Any

from frazil.clients.kafka import Kafka
from frazil.clients.kafka_records import Record
from frazil.declaration import Pipeline
from frazil.errors import CatalogUnavailable, InvalidInput, ServiceUnavailable
from frazil.lake.layout import prefix_of
from frazil.lake.ledger.entry import Entry
from frazil.lake.read.catalog_errors import translated_errors
from frazil.lake.read.scan import Where, rows
from frazil.lake.read.stored_tables import Lake, Snapshot, StoredTable
from frazil.trace.comparison import Compared, compared
from frazil.trace.other_decoder import NotDecoded, Schemas, decoded, fields_of

ROWS = 10
"""Rows that a condition may find; more of them are counted and not traced."""


class Fate(StrEnum):
    """The fate of a record. `ROW`: a row is of it. `DEAD_LETTER`: it is one. `SUPERSEDED`: the row of its key is of another record.

    `NO_ROW`: the table lacks a row of its key: it deleted the row, or a later record did.
    `LEFT_OUT`: filtered, skipped, or without effect.
    `GAP`: Kafka does not have a record there. `UNREAD`: it was not read yet, or is before the pipeline's start.
    """

    ROW = "row"
    DEAD_LETTER = "dead_letter"
    SUPERSEDED = "superseded"
    NO_ROW = "no_row"
    LEFT_OUT = "left_out"
    GAP = "gap"
    UNREAD = "unread"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A record, its place, and its fate. What is not known is None.

    `snapshot_id`, `commit_id` and `committed_at` are of the commit that landed it, if the table keeps it. `compared` are the
    columns of its row next to the record; `notes` say what could not be compared, and why.
    """

    topic: str
    partition: int
    offset: int
    fate: Fate
    schema_id: int | None = None
    snapshot_id: int | None = None
    commit_id: str | None = None
    committed_at: datetime | None = None
    row: Mapping[str, Any] = field(default_factory=dict)
    record: Any = None
    compared: tuple[Compared, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Return whether a column has another value than the record."""
        return any(one.verdict == "differs" for one in self.compared)

    def document(self) -> dict[str, Any]:
        """Return it as JSON; values as text where JSON has no type for them."""
        at = self.committed_at.isoformat() if self.committed_at else None
        return {**asdict(self), "committed_at": at, "fate": self.fate.value}


@dataclass(frozen=True, slots=True)
class Tracer:
    """Traces records of one pipeline. Values of masked columns are shown as the table has them; records of such a topic are not."""

    pipeline: Pipeline
    lake: Lake
    kafka: Kafka
    schemas: Schemas | None

    def of_rows(self, condition: str) -> tuple[list[Trace], int]:
        """Return the traces of the rows that meet a condition, `ROWS` at most, and how many rows meet it.

        The condition is PyIceberg's: comparisons with `and`, `or`, `not`, `in`, `is null`. Raises `InvalidInput` for another one.
        """
        table = self._table()
        found, number = list[dict[str, Any]](), 0
        for batch in self._rows_where(table, condition):
            number += batch.num_rows
            found += batch.slice(0, max(ROWS - len(found), 0)).to_pylist()
        return [self._of_row(table, row) for row in found], number

    def of_offset(self, partition: int, offset: int) -> Trace:
        """Return the trace of the record at an offset."""
        table = self._table()
        prefix = prefix_of(self.pipeline)
        place = [Where(column=f"{prefix}partition", equal=partition), Where(column=f"{prefix}offset", equal=offset)]
        names = tuple(one.name for one in table.iceberg.schema().fields)
        batches = (batch.to_pylist() for batch in rows(table, names, place))
        if row := next((row for found in batches for row in found), None):
            return self._of_row(table, row)
        made = Trace(topic=self.pipeline.topic.name, partition=partition, offset=offset, fate=Fate.UNREAD)
        newest = table.newest(self.pipeline.name)
        entry = newest.entry if newest is not None else None
        if entry is None or entry.end is None or offset >= entry.end.at.get(partition, 0):
            return replace(made, notes=("the pipeline has not read it yet",))
        start = entry.totals.at.get(partition) if entry.totals is not None else None
        if start is not None and offset < start.start:
            return replace(made, notes=(f"the pipeline began at offset {start.start} of this partition",))
        if letters := self._letters(partition, offset):
            return self._with_commit(table, replace(made, fate=Fate.DEAD_LETTER, notes=tuple(letters)))
        return self._without_row(table, self._with_commit(table, made))

    # ── Rows ────────────────────────────────────────────────────────────────────────────────────
    def _table(self) -> StoredTable:
        table = self.lake.table(self.pipeline.table.identifier)
        if table is None:
            what = "the table does not exist"
            raise InvalidInput(what, where=f"table {self.pipeline.table.identifier}", do="Run the pipeline first")
        return table

    def _rows_where(self, table: StoredTable, condition: str) -> Iterator[Any]:
        from pyiceberg.expressions import parser

        try:
            wanted = parser.parse(condition)
            scan = table.iceberg.scan(row_filter=wanted)
            with translated_errors(f"table {table.identifier}"):
                yield from scan.to_arrow_batch_reader()
        except (CatalogUnavailable, OSError):
            raise
        except Exception as error:  # noqa: BLE001 - PyIceberg raises errors of its parser's, and of many kinds for a wrong type
            text = (str(error).splitlines() or [type(error).__name__])[0]
            do = "Compare columns with values, like \"order_id = 7 and status = 'paid'\""
            raise InvalidInput(
                f"{condition!r} is not a condition on the table: {text}", where="--where", do=do
            ) from None

    def _of_row(self, table: StoredTable, row: dict[str, Any]) -> Trace:
        place = (
            row["_kafka"]
            if isinstance(row.get("_kafka"), Mapping)
            else {name.removeprefix("_kafka_"): value for name, value in row.items() if name.startswith("_kafka_")}
        )
        made = Trace(
            topic=place["topic"],
            partition=place["partition"],
            offset=place["offset"],
            fate=Fate.ROW,
            schema_id=place.get("schema_id"),
            row={name: value for name, value in row.items() if not name.startswith("_")},
        )
        return self._compared(self._with_commit(table, made))

    def _compared(self, made: Trace) -> Trace:
        record, problem = self._record(made)
        if record is None:
            return replace(made, notes=(*made.notes, problem))
        try:
            value = decoded(self.pipeline, record, self.schemas)
        except NotDecoded as error:
            return replace(made, notes=(*made.notes, f"the record is not compared: {error}"))
        fields = fields_of(self.pipeline, value)
        if fields is None:
            return replace(made, notes=(*made.notes, "the record is not an object, so its columns are not compared"))
        shown = None if self.pipeline.shape.is_masked else value
        return replace(made, record=shown, compared=tuple(compared(self.pipeline, made.row, fields)))

    def _record(self, made: Trace) -> tuple[Record | None, str]:
        """Return the record, or why it cannot be read."""
        try:
            found = self.kafka.records(made.topic, {made.partition: made.offset}, self.pipeline.isolation)
        except ServiceUnavailable as error:
            return None, f"the record cannot be read: {error.what}"
        record = found.get(made.partition)
        return record, "" if record is not None else "Kafka does not have the record any more, or never had one there"

    # ── Commits and dead letters ────────────────────────────────────────────────────────────────
    def _with_commit(self, table: StoredTable, made: Trace) -> Trace:
        """Return the trace with the commit whose offsets have the record, or the replay that landed it."""
        number = self._decision(made.partition, made.offset)
        for snapshot in table.commits(self.pipeline.name):
            entry = snapshot.entry
            is_it = entry.is_replay and entry.number == number if number is not None else _has(entry, made)
            if is_it:
                return _of_commit(made, snapshot)
        return replace(made, notes=(*made.notes, "the table keeps no snapshot of its commit any more"))

    def _decision(self, partition: int, offset: int) -> int | None:
        """Return the number of the decision by which a replay landed a dead letter; None if none did."""
        found = [
            one for one in self._dead(partition, offset, ("outcome", "decision")) if one.get("outcome") == "recovered"
        ]
        return found[-1]["decision"] if found else None

    def _letters(self, partition: int, offset: int) -> list[str]:
        names = ("reason", "message", "outcome", "outcome_reason", "attempts")
        made = []
        for one in self._dead(partition, offset, names):
            why = f": {one['outcome_reason']}" if one.get("outcome_reason") else ""
            made.append(f"{one['reason']}: {one['message']}; {one.get('outcome') or 'open'}{why}")
        return made

    def _dead(self, partition: int, offset: int, names: Sequence[str]) -> list[dict[str, Any]]:
        side = self.lake.table(self.pipeline.table.dead_letters)
        if side is None:
            return []
        known = tuple(name for name in names if name in side.layout.columns)
        place = [Where(column="partition", equal=partition), Where(column="offset", equal=offset)]
        return [row for batch in rows(side, known, place) for row in batch.to_pylist()] if known else []

    def _without_row(self, table: StoredTable, made: Trace) -> Trace:
        """Return the trace of a record that was read and is neither a row nor a dead letter."""
        record, problem = self._record(made)
        if record is None:
            return replace(made, fate=Fate.GAP, notes=(*made.notes, problem))
        counted = _left_out(table, made)
        if self.pipeline.write.replaces_rows and (of_key := self._of_key(table, record)) is not None:
            return replace(made, fate=of_key[0], notes=(*made.notes, of_key[1], *counted))
        return replace(made, fate=Fate.LEFT_OUT, notes=(*made.notes, *counted))

    def _of_key(self, table: StoredTable, record: Record) -> tuple[Fate, str] | None:
        """Return what the row of a record's key says; None if its key cannot be read here."""
        from pyiceberg.expressions import AlwaysTrue, BooleanExpression, EqualTo, Reference

        schema = table.iceberg.schema()
        names = [schema.find_field(number).name for number in sorted(schema.identifier_field_ids)]
        try:
            value = fields_of(self.pipeline, decoded(self.pipeline, record, self.schemas)) or {}
            key = decoded(self.pipeline, record, self.schemas, is_key=True)
        except NotDecoded:
            return None
        known = {**(key if isinstance(key, Mapping) else dict.fromkeys(names, key)), **value}
        if self.pipeline.write.key is None and not isinstance(key, Mapping):
            known = dict.fromkeys(names, key)
        wanted: BooleanExpression = AlwaysTrue()
        for name in names:
            if known.get(name) is None:
                return None
            wanted &= EqualTo(term=Reference(name), value=known[name])
        with translated_errors(f"table {table.identifier}"):
            found = table.iceberg.scan(row_filter=wanted).to_arrow().to_pylist()
        if not found:
            return Fate.NO_ROW, "the table lacks a row of its key: this record deleted it, or a later one"
        row, prefix = found[0], prefix_of(self.pipeline)
        place = (
            row["_kafka"] if prefix.startswith("_kafka.") else {n: row[f"{prefix}{n}"] for n in ("partition", "offset")}
        )
        return Fate.SUPERSEDED, f"the row of its key is of partition {place['partition']}, offset {place['offset']}"


def _has(entry: Entry, made: Trace) -> bool:
    if entry.start is None or entry.end is None or entry.is_replay:
        return False
    return entry.start.at.get(made.partition, 0) <= made.offset < entry.end.at.get(made.partition, 0)


def _of_commit(made: Trace, snapshot: Snapshot) -> Trace:
    return replace(
        made, snapshot_id=snapshot.id, commit_id=snapshot.entry.commit_id, committed_at=snapshot.committed_at
    )


def _left_out(table: StoredTable, made: Trace) -> Iterator[str]:
    """Yield what the record's commit left out, by reason: one of these is the record's."""
    snapshot = table.snapshots.get(made.snapshot_id or -1)
    counts = snapshot.entry.counts if snapshot is not None else None
    if counts is None:
        return
    for what, by_reason in (("filtered", counts.filtered), ("skipped", counts.skipped)):
        for reason, number in islice(by_reason.items(), ROWS):
            yield f"its commit {what} {number:,} records: {reason}"
