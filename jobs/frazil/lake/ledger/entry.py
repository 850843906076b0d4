"""The ledger: the offsets that a table holds, kept in the summaries of its own snapshots.

An offset is always the next offset to read. The summary keys below are public: readers of a table may rely on them.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, TypeVar
from uuid import UUID, uuid5

from frazil.errors import LedgerLost, LedgerTooNew
from frazil.lake.ledger.key_totals import KeyAccount, StaleKeys
from frazil.lake.ledger.next_offsets import Offsets, canonical
from frazil.lake.ledger.remembered_deletes import RememberedDeletes
from frazil.lake.ledger.totals import Counts, Totals

T = TypeVar("T")

FORMAT = "frazil.format"  # version of these keys
PIPELINE = "frazil.pipeline"
COMMIT_ID = "frazil.commit-id"  # uuid5 of pipeline, table uuid, start, end
START = "frazil.start"  # canonical JSON of `Offsets`: where this snapshot's records begin
END = "frazil.end"  # ... and where they end: what the table holds after it
COUNTS = "frazil.counts"  # canonical JSON of `Counts`
TOTALS = "frazil.totals"  # canonical JSON of `Totals`: the account since the pipeline began; not in side tables
KEYS = "frazil.keys"  # canonical JSON of `KeyAccount`: the rows of an upsert table; not in append tables
# Canonical JSON of `RememberedDeletes`: files of the keys that a table with an order has deleted; none if there are none.
REMEMBERED_DELETES = "frazil.remembered-deletes"
STALE_KEYS = "frazil.stale-keys"  # canonical JSON of `StaleKeys`; not in append tables
SCHEMA_IDS = "frazil.schema-ids"  # JSON list of the writer schema ids that the batch was decoded with
# Milliseconds since 1970: the minimum over partitions of each one's newest record timestamp.
VALID_THROUGH = "frazil.valid-through"
SIDE = "frazil.side"  # location of the file that names the side tables' data files of this decision
RUN = "frazil.run"  # id of the driver's run that committed
VERSION = "frazil.version"  # of this software
EVENTS = "frazil.accepted"  # JSON: an operator's decision that this snapshot records
KEYS_MOVED = "frazil.keys-moved"  # offsets before which keys may change their partition, until they are reached
DELETES_LOST = "frazil.deletes-lost"  # offsets before which deletes may be lost, as accepted, until they are reached
STAGED_AT = "frazil.staged-at"  # microseconds since 1970; with the run, it names the dead letters of one batch
STAGED_BY = "frazil.staged-by"  # in dead-letter tables: the run that staged what this snapshot appended
DECISION = "frazil.decision"  # number of the newest decision on dead letters, from 0; in their table: the newest that it finished
TABLE = "frazil.table"  # in dead-letter tables: uuid of the table whose decisions it finishes
REPLAY = "frazil.replay"  # JSON: the id of a replay's batch, and how many dead letters have which outcome
# JSON: the `number` of the newest decision by a replay, and how many dead letters have which outcome; not there before the first.
REPLAYED = "frazil.replayed"
CLOSED_TOPICS = "frazil.closed-topics"  # JSON list: the topic of each of the `closed` accounts in `TOTALS`
UPKEEP = "frazil.upkeep"  # in a snapshot that changed neither rows nor offsets: which action of maintenance made it
# JSON: the rejected records that an operator accepted as dead letters, as ranges of offsets by partition, until they are landed.
ACCEPTED_RECORDS = "frazil.accepted-records"
REJECTED_RECORDS = "rejected-records"  # the decision, in EVENTS, that accepts rejected records by their places
REJECTED_SHARE = "rejected-share"  # the decision, in EVENTS, that accepts rejected records
LATE_RECORDS = "late-records"  # the decision, in EVENTS, that accepts late records
SOURCE_TRUNCATED = "source-truncated"  # the decision, in EVENTS, that keeps the rows of a truncated source
UNTIL = "until"  # in the JSON of such a decision: the offsets, by partition, before which it counts
RECOUNT = "counts-recount"  # the decision, in EVENTS, that takes back what earlier commits counted as gaps by mistake
ROWS_DELETED = "rows-deleted"  # the decision, in EVENTS, that takes rows that another engine deleted as deleted


def window_of(event: str) -> str:
    """Return the key of the offsets before which a decision counts."""
    return f"frazil.{event}"


WRITE_MODE = "frazil.write-mode"
"""Table property: the write mode that the table was made for. Append tables have none."""
ORDER_BY = "frazil.order-by"
"""Table property: the columns that order the records of a key, by name. Tables without an order have none."""
KEY = "frazil.key"
"""Table property: the field ids of a changelog's key, a JSON list. In upsert tables these are the identifier fields."""
ENVELOPE = "frazil.envelope"
"""Table property: the kind of the change events that the table is made of. Other tables have none."""
APPEND, UPSERT, CHANGELOG = "append", "upsert", "changelog"
FORMAT_VERSION = "1"
COMPACT_VERSION = "2"  # of a summary with a compact value, see `compact`
BATCH_EVENTS = (REJECTED_SHARE, LATE_RECORDS, SOURCE_TRUNCATED)
"""Decisions about batches. The offsets before which each of them counts are in a key of its own, until they are reached."""
WINDOWS = (KEYS_MOVED, DELETES_LOST, *map(window_of, (*BATCH_EVENTS, REJECTED_RECORDS)))
"""Offsets that each commit repeats until it has come to all of them."""
MAY_BE_COMPACT = (START, END, COUNTS, TOTALS, REMEMBERED_DELETES, ACCEPTED_RECORDS, *WINDOWS)


Ranges = Mapping[int, Sequence[Sequence[int]]]
"""Places of records: ranges of offsets, each with its first and its next one, by partition."""


class Properties(Protocol):
    """Properties of a table, in Python or Java."""

    def get(self, name: str, /) -> Any:
        """Return a property; None if the table does not have it."""


_NAMESPACE = UUID("b5f3e7a2-51f6-4c1c-9d57-0d3f8f1f7a10")


def made_for(properties: Properties, columns: Mapping[int, str] = MappingProxyType({}), key: Sequence[str] = ()) -> str:
    """Return the write mode that a table was made for, with envelope, key and order, as `write_modes.identity` does.

    `columns` are the names of the table's columns by field id, `key` its identifier fields: those of a state are its key.
    """
    mode, order, envelope = (properties.get(name) for name in (WRITE_MODE, ORDER_BY, ENVELOPE))
    of = f" of {envelope} events" if envelope else ""
    by = f" by {', '.join(by)}" if (by := key if mode == UPSERT else key_of(properties, columns)) else ""
    return f"{mode or APPEND}{of}{by}{f' ordered by {order}' if order else ''}"


def key_of(properties: Properties, columns: Mapping[int, str]) -> tuple[str, ...]:
    """Return the columns of a changelog's key; none for another table.

    Field ids stay when a column is renamed, so the names are those of now. One that was dropped is named by its id.
    """
    ids = json.loads(properties.get(KEY) or "[]")
    return tuple(columns.get(number, f"dropped column {number}") for number in ids)


def mode_properties(
    mode: str, order_by: Sequence[str], envelope: str | None = None, key: Sequence[int] = ()
) -> dict[str, str]:
    """Return the properties of a new table that hold its write mode, its envelope's kind and a changelog's key, as field ids."""
    if mode == APPEND:
        return {}
    more = {ORDER_BY: ", ".join(order_by), ENVELOPE: envelope, KEY: canonical(list(key)) if key else None}
    return {WRITE_MODE: mode, **{name: value for name, value in more.items() if value}}


def stored(summary: Mapping[str, str]) -> dict[str, str]:
    """Return a summary as a snapshot holds it: long values are compact, and the format says so. `Entry.of` reads both forms."""
    values = {key: compact(value) if key in MAY_BE_COMPACT else value for key, value in summary.items()}
    return values if values == summary else {**values, FORMAT: COMPACT_VERSION}


def tag(pipeline: str) -> str:
    """Return the name of the tag that marks a pipeline's newest commit in its tables."""
    return f"frazil_{pipeline}"


def writers(tags: Iterable[str]) -> frozenset[str]:
    """Return the pipelines that have committed to a table with these tags."""
    return frozenset(name.removeprefix(tag("")) for name in tags if name.startswith(tag("")))


def commit_id(pipeline: str, table_uuid: str, start: Offsets, end: Offsets, replay: str | None = None) -> str:
    """Return the id of the commit of exactly these records to exactly this table; the same on every try.

    A `replay`, the value of `REPLAY`, reads no offsets: its own id says which commit it is.
    """
    named = [pipeline, table_uuid, str(start), str(end), *([] if replay is None else [replay])]
    return str(uuid5(_NAMESPACE, canonical(named)))


@dataclass(frozen=True, slots=True)
class Entry:
    """One snapshot's summary, as far as it is the ledger's; values of `summary` are plain where the snapshot's are compact."""

    snapshot_id: int
    commit_id: str | None
    start: Offsets | None
    end: Offsets | None
    counts: Counts | None
    side: str | None
    run: str | None
    summary: Mapping[str, str]
    at_ms: int = 0
    """The time of the commit, milliseconds since 1970, by the clock of who committed it."""

    @classmethod
    def of(cls, snapshot_id: int, summary: Mapping[str, str], at_ms: int = 0) -> Entry:
        """Read a snapshot's summary; keys of other writers are kept in `summary` only. Raises `LedgerTooNew`, `LedgerLost`."""
        if summary.get(FORMAT, FORMAT_VERSION) not in (FORMAT_VERSION, COMPACT_VERSION):
            raise LedgerTooNew(
                f"its ledger has format {summary[FORMAT]}, this release reads formats {FORMAT_VERSION} and {COMPACT_VERSION}",
                where=f"snapshot {snapshot_id}",
                do=f"Use the release that wrote it ({summary.get(VERSION, 'unknown')}) or a newer one",
            )
        summary = {
            key: (parsed(snapshot_id, summary, key, plain) or "") if key in MAY_BE_COMPACT else value
            for key, value in summary.items()
        }
        return cls(
            snapshot_id,
            summary.get(COMMIT_ID),
            parsed(snapshot_id, summary, START, Offsets.parse),
            parsed(snapshot_id, summary, END, Offsets.parse),
            parsed(snapshot_id, summary, COUNTS, Counts.parse),
            summary.get(SIDE),
            summary.get(RUN),
            summary,
            at_ms,
        )

    def _parsed(self, key: str, parse: Callable[[str], T]) -> T | None:
        return parsed(self.snapshot_id, self.summary, key, parse)

    @property
    def number(self) -> int:
        """The number of the newest decision; 0 before the first one."""
        return self._parsed(DECISION, int) or 0

    @property
    def is_replay(self) -> bool:
        """Return whether it is of a replay of dead letters."""
        return REPLAY in self.summary

    @property
    def replayed(self) -> int:
        """The number of the newest decision by a replay that the entry has; 0 before the first one."""
        return int((self._parsed(REPLAYED, json.loads) or {}).get("number", 0))

    @property
    def closed_dead_letters(self) -> Mapping[str, int]:
        """How many dead letters have which outcome, since the pipeline began."""
        known = self._parsed(REPLAYED, json.loads) or {}
        return {name: int(count) for name, count in known.items() if name != "number" and count}

    @property
    def schema_ids(self) -> tuple[int, ...]:
        """The writer schema ids of the batch; empty where the summary does not say."""
        return tuple(self._parsed(SCHEMA_IDS, json.loads) or ())

    @property
    def valid_through(self) -> int | None:
        """The newest record timestamp, milliseconds since 1970; None where the summary does not say."""
        return self._parsed(VALID_THROUGH, int)

    def window(self, name: str) -> Offsets | None:
        """Return the offsets up to which an operator's decision counts, one of `WINDOWS`; None once they are reached."""
        return self._parsed(name, Offsets.parse)

    @property
    def accepted_records(self) -> Ranges:
        """The rejected records that an operator accepted and that are not landed yet."""
        found = self._parsed(ACCEPTED_RECORDS, json.loads) or {}
        return {int(partition): ranges for partition, ranges in found.items()}

    @property
    def event(self) -> str | None:
        """The event that an operator decided about, as `frazil accept` names it; None if the snapshot records no decision."""
        event: str | None = (self._parsed(EVENTS, json.loads) or {}).get("event")
        return event

    @property
    def keys(self) -> KeyAccount | None:
        """The account of a table's keys; None in an append table."""
        return self._parsed(KEYS, KeyAccount.parse)

    @property
    def remembered_deletes(self) -> RememberedDeletes:
        """The files of the keys that the table has deleted, as far as it remembers them."""
        return self._parsed(REMEMBERED_DELETES, RememberedDeletes.parse) or RememberedDeletes()

    @property
    def stale_keys(self) -> StaleKeys | None:
        """The keys whose newest record was rejected; None in an append table, and where the summary does not say."""
        return self._parsed(STALE_KEYS, StaleKeys.parse)

    @property
    def totals(self) -> Totals | None:
        """The account since the pipeline began; None in a side table."""
        return self._parsed(TOTALS, lambda text: Totals.parse(text, self.summary.get(CLOSED_TOPICS)))


def parsed(snapshot_id: int, summary: Mapping[str, str], key: str, parse: Callable[[str], T]) -> T | None:
    """Return a value of a summary; None if it has none. Raises `LedgerLost` for a damaged one."""
    try:
        return parse(summary[key]) if key in summary else None
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        raise LedgerLost.of_snapshot(summary.get(PIPELINE, ""), snapshot_id, key) from error


MOST_PLAIN = 8_192
"""The most characters of a value that stays JSON. The offsets of 300 partitions are always shorter."""
MARK = "zlib:"
"""The beginning of a compact value. The rest is base64 of zlib of the JSON text."""


def compact(text: str) -> str:
    """Return a value as a summary holds it: the text, or its compact form if it is longer than `MOST_PLAIN`."""
    if len(text) <= MOST_PLAIN:
        return text
    return MARK + base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def plain(value: str) -> str:
    """Return the text of which `compact` made a value."""
    if not value.startswith(MARK):
        return value
    return zlib.decompress(base64.b64decode(value.removeprefix(MARK))).decode()
