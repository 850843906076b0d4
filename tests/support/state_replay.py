"""What an upsert table must hold: the records of a topic applied one after the other, in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar

from frazil.declaration import Upsert
from frazil.declaration.options import Deletion
from frazil.lake.ledger.key_totals import KeyAccount
from tests.support.shop import Shop, avro, frame

VERSIONED = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "order_id", "type": "long"},
        {"name": "user", "type": "string"},
        {"name": "version", "type": ["null", "int"], "default": None},
    ],
}
KEY = {"type": "record", "name": "Key", "fields": [{"name": "order_id", "type": "long"}]}
EPOCH_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Record:
    """A record as it was produced. `word` is None for one without a value; `at` is its timestamp, in seconds after `EPOCH_MS`."""

    key: int
    word: str | None
    partition: int
    offset: int
    at: int
    version: int | None = None
    forgets_deletes: bool = False
    """It comes when the table has forgotten the deletes before it."""


@dataclass(frozen=True)
class Row:
    """A row of the table: word, when it was deleted, and what orders it."""

    word: str | None
    deleted_at: int | None
    place: tuple[Any, ...]


class StateReplay:
    """A topic whose records are kept, in the order in which they were produced. `ordered_by` are columns of their order."""

    key_column: ClassVar[str] = "_kafka_key"

    def __init__(self, shop: Shop, *, ordered_by: str | tuple[str, ...] | None = None) -> None:
        self.shop, self.records, self.ordered_by = shop, list[Record](), ordered_by
        self._forgets = False
        self.hidden = shop.pipeline.shape.where and "blue"  # a row with this word does not match
        self.schema: dict[str, Any] = VERSIONED
        self.schema_id = shop.register(VERSIONED)

    def key(self, number: int) -> bytes:
        """Return the key of a record."""
        return f"k{number}".encode()

    def in_table(self, number: int) -> Any:
        """Return what the table's column has of a key."""
        return f"k{number}"

    def forget_deletes(self) -> None:
        """Have the deletes before the next record order no later one."""
        self._forgets = True

    def add_field(self) -> None:
        """Give later records one more field."""
        name = f"more_{len(self.schema['fields'])}"
        field = {"name": name, "type": ["null", "int"], "default": None}
        self.schema = {**self.schema, "fields": [*self.schema["fields"], field]}
        self.schema_id = self.shop.register(self.schema)

    def produce(
        self, key: int, word: str | None, *, at: int = 0, version: int | None = None, partition: int | None = None
    ) -> Record:
        """Produce a record; its partition is the key's own if none is given."""
        value = None
        if word is not None:
            value = frame(self.schema_id, avro(self.schema, {"order_id": key, "user": word, "version": version}))
        where = key % 2 if partition is None else partition
        ((_, offset),) = self.shop.produce([value], partition=where, key=self.key(key), timestamp=EPOCH_MS + at * 1000)
        shown = None if word == self.hidden else word
        self.records.append(Record(key, shown, where, offset, at, version, self._forgets))
        self._forgets = False
        return self.records[-1]

    def rows(self, records: Iterable[Record] | None = None) -> dict[int, Row]:
        """Return the rows that the records make."""
        now: dict[int, Row] = {}
        names = (self.ordered_by,) if isinstance(self.ordered_by, str) else self.ordered_by or ()
        for record in self.records if records is None else records:
            if record.forgets_deletes:
                now = {key: row for key, row in now.items() if row.deleted_at is None}
            order = tuple(record.version if name == "version" else record.at for name in names)
            place = (*order, record.partition, record.offset) if order else ()
            there = now.get(record.key)
            if there is not None and place < there.place:
                continue
            if record.word is not None:
                now[record.key] = Row(record.word, None, place)
            elif there is not None:
                now[record.key] = replace(there, deleted_at=record.at, place=place)
            elif order:
                now[record.key] = Row(None, record.at, place)
        return now

    def check(self, *, late: int | None = None, are_values_known: bool = True) -> KeyAccount:
        """Assert that the table holds these rows, and that its account proves it. Return the account.

        The values of deleted rows may depend on the order in which partitions are read: then they are not known.
        """
        wanted = {
            self.in_table(key): (row.word if row.deleted_at is None or are_values_known else ..., row.deleted_at)
            for key, row in self.rows().items()
            if row.deleted_at is None or self.is_soft
        }
        rows = self.shop.landed()
        found = {
            row[self.key_column]: (
                row["user"] if row.get("_deleted_at") is None or are_values_known else ...,
                seconds(row.get("_deleted_at")),
            )
            for row in rows
        }
        assert found == wanted
        assert len(rows) == len(wanted)
        account = self.account()
        assert account.rows == len(wanted)
        assert late is None or account.late == late
        for deep in (False, True):
            proof = self.shop.verified(deep=deep)
            assert proof.outcome == "proven", proof.findings
            notes = [note for note in proof.notes if note.endswith("so they changed nothing")]
            assert notes == (
                [f"{account.late:,} of the records came late: their keys had later rows, so they changed nothing"]
                if account.late
                else []
            )
        return account

    def settle(self) -> None:
        """Land all that waits, and check the table."""
        self.shop.drain()
        self.check()

    @property
    def is_soft(self) -> bool:
        """Whether deleted rows stay in the table."""
        write = self.shop.pipeline.write
        return isinstance(write, Upsert) and write.on_tombstone is Deletion.SOFT_DELETE

    def account(self) -> KeyAccount:
        """Return the account of the newest commit."""
        return self.shop.account()


class ReplayByColumn(StateReplay):
    """The same of a table whose key is a column of the value; the record's key has it, too."""

    key_column = "order_id"

    def __init__(self, shop: Shop, *, ordered_by: str | tuple[str, ...] | None = None) -> None:
        super().__init__(shop, ordered_by=ordered_by)
        self._key_id = shop.registry_admin.register(f"{shop.topic}-key", json.dumps(KEY))

    def key(self, number: int) -> bytes:
        """Return the key of a record."""
        return frame(self._key_id, avro(KEY, {"order_id": number}))

    def in_table(self, number: int) -> Any:
        """Return what the table's column has of a key."""
        return number


def seconds(instant: datetime | None) -> int | None:
    """Return an instant as seconds after `EPOCH_MS`."""
    return None if instant is None else round(instant.astimezone(UTC).timestamp()) - EPOCH_MS // 1000
