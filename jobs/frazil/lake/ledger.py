"""The ledger: the offsets that a table holds, as the summaries of its own snapshots tell them.

An offset is always the next offset to read. The summary keys below are public: readers of a table may rely on them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID, uuid5

from frazil.errors import LedgerTooNew
from frazil.lake.compact import compact, plain
from frazil.lake.last_records import LastRecords

FORMAT = "frazil.format"  # version of these keys
PIPELINE = "frazil.pipeline"
COMMIT_ID = "frazil.commit-id"  # uuid5 of pipeline, table uuid, start, end
START = "frazil.start"  # canonical JSON of `Offsets`: where this snapshot's records begin
END = "frazil.end"  # ... and where they end: what the table holds after it
COUNTS = "frazil.counts"  # canonical JSON of `Counts`
TOTALS = "frazil.totals"  # canonical JSON of `Totals`: the account since the pipeline began; not in side tables
SCHEMA_IDS = "frazil.schema-ids"  # JSON list of the writer schema ids that the batch was decoded with
# Milliseconds since 1970: the minimum over partitions of each one's newest record timestamp.
VALID_THROUGH = "frazil.valid-through"
SIDE = "frazil.side"  # location of the file that names the side tables' data files of this decision
RUN = "frazil.run"  # id of the driver's run that committed
VERSION = "frazil.version"  # of this software
EVENTS = "frazil.accepted"  # JSON: an operator's decision that this snapshot records
REJECTS_ACCEPTED = (
    "frazil.rejects-accepted"  # offsets up to which an operator accepted rejected records, until they are reached
)
STAGED_AT = "frazil.staged-at"  # microseconds since 1970; with the run, it names the dead letters of one batch
STAGED_BY = "frazil.staged-by"  # in dead-letter tables: the run that staged what this snapshot appended
DECISION = (
    "frazil.decision"  # number of the newest decision on dead letters; in their table: of the newest that it finished
)
TABLE = "frazil.table"  # in dead-letter tables: uuid of the table whose decisions it finishes
CLOSED_TOPICS = "frazil.closed-topics"  # JSON list: the topic of each of the `closed` accounts in `TOTALS`
UPKEEP = "frazil.upkeep"  # in a snapshot that changed neither rows nor offsets: which action of maintenance made it
RECOUNT = "counts-recount"  # the decision, in EVENTS, that takes back what earlier commits counted as gaps by mistake

FORMAT_VERSION = "1"
COMPACT_VERSION = "2"  # of a summary with a compact value, see `compact`
MAY_BE_COMPACT = (START, END, COUNTS, TOTALS)
_NAMESPACE = UUID("b5f3e7a2-51f6-4c1c-9d57-0d3f8f1f7a10")


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, so that equal values are equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def stored(summary: Mapping[str, str]) -> dict[str, str]:
    """Return a summary as a snapshot holds it: long values are compact, and the format says so. `Entry.of` reads both forms."""
    values = {key: compact(value) if key in MAY_BE_COMPACT else value for key, value in summary.items()}
    return values if values == summary else {**values, FORMAT: COMPACT_VERSION}


def tag(pipeline: str) -> str:
    """The name of the tag that marks a pipeline's newest commit in its tables."""
    return f"frazil_{pipeline}"


@dataclass(frozen=True, slots=True)
class Offsets:
    """The next offset to read of each partition, and the topic they are offsets of.

    `last` are the last records before these offsets, None if they were not asked for. They are no part of the summary, nor of
    equality: a table property holds them (`last_records`).
    """

    topic: str
    topic_id: str
    at: Mapping[int, int]
    last: LastRecords | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """Canonical JSON, as it stands in a summary."""
        return canonical(
            {"topic": self.topic, "topic_id": self.topic_id, "offsets": {str(p): o for p, o in self.at.items()}}
        )

    @classmethod
    def parse(cls, text: str) -> Offsets:
        """The offsets that `str()` wrote."""
        document = json.loads(text)
        at = {int(p): int(o) for p, o in document["offsets"].items()}
        return cls(document["topic"], document["topic_id"], dict(sorted(at.items())))

    def same_as(self, other: Offsets | None) -> bool:
        """Whether both tell the same offsets of the same topic; an absent partition equals only an absent one."""
        return other is not None and (self.topic_id, dict(self.at)) == (other.topic_id, dict(other.at))

    def reaches(self, other: Offsets) -> bool:
        """Whether every partition of `other` stands here, at the same offset or past it."""
        return self.topic_id == other.topic_id and all(self.at.get(p, -1) >= o for p, o in other.at.items())


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the records of one batch: read = written + the sum of rejected + the sum of skipped.

    `rejected` counts records in the dead-letter table by reason; `skipped` those that the declaration lets go, by reason, and
    `skipped_at` by partition. `gaps` are offsets without a record, by partition, as counted when the batch was read: a compacted
    topic and the markers of transactions leave them; on a plain topic there are none.
    """

    read: int = 0
    written: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    skipped_at: Mapping[int, int] = field(default_factory=dict)
    gaps: Mapping[int, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """Canonical JSON, as it stands in a summary."""
        return canonical(
            {
                "read": self.read,
                "written": self.written,
                "rejected": dict(self.rejected),
                "skipped": dict(self.skipped),
                "skipped_at": {str(p): n for p, n in self.skipped_at.items()},
                "gaps": {str(p): n for p, n in self.gaps.items()},
            }
        )

    @classmethod
    def parse(cls, text: str) -> Counts:
        """The counts that `str()` wrote."""
        document = json.loads(text)
        return cls(
            document["read"],
            document["written"],
            document["rejected"],
            document["skipped"],
            {int(p): n for p, n in document["skipped_at"].items()},
            {int(p): n for p, n in document["gaps"].items()},
        )

    @property
    def adds_up(self) -> bool:
        """The one equation of a batch."""
        return self.read == self.written + sum(self.rejected.values()) + sum(self.skipped.values())


@dataclass(frozen=True, slots=True)
class Total:
    """One partition's account since `start`, the offset its reading began at: declared skips, and offsets without a record."""

    start: int
    skipped: int = 0
    gaps: int = 0


@dataclass(frozen=True, slots=True)
class Closed:
    """A partition's account that ended at `end`, as an operator's decision started over: its offsets may come again."""

    partition: int
    start: int
    end: int
    skipped: int = 0
    gaps: int = 0
    topic: str | None = field(default=None, compare=False)
    """The topic's name; None where the ledger does not say. Version 0.1.0 drops it, so equality leaves it out."""


@dataclass(frozen=True, slots=True)
class Totals:
    """All that has neither row nor dead letter, by partition, since the pipeline began.

    Each commit carries its base's totals on, so that the account outlives the snapshots it was made of. `closed` is empty
    unless a topic was re-created, or truncated below what the table held, and the operator went on.
    """

    at: Mapping[int, Total] = field(default_factory=dict)
    closed: tuple[Closed, ...] = ()

    def __str__(self) -> str:
        """Canonical JSON: partition -> [start, skipped, gaps]; `closed` -> [partition, start, end, skipped, gaps] each."""
        document: dict[str, Any] = {str(p): [t.start, t.skipped, t.gaps] for p, t in self.at.items()}
        if self.closed:
            document["closed"] = [[c.partition, c.start, c.end, c.skipped, c.gaps] for c in self.closed]
        return canonical(document)

    @property
    def closed_topics(self) -> str | None:
        """Canonical JSON of the closed accounts' topics, in their order; None if there are none."""
        return canonical([c.topic for c in self.closed]) if self.closed else None

    @classmethod
    def parse(cls, text: str, topics: str | None = None) -> Totals:
        """The totals that `str()` wrote, with the topics that `closed_topics` wrote."""
        document = json.loads(text)
        accounts = document.pop("closed", ())
        names = json.loads(topics) if topics is not None else []
        names += [None] * (len(accounts) - len(names))  # accounts that version 0.1.0 closed come after named ones
        named = zip(accounts, names, strict=False)
        closed = tuple(Closed(p, start, end, skipped, gaps, name) for (p, start, end, skipped, gaps), name in named)
        return cls({int(p): Total(*account) for p, account in document.items()}, closed)

    def after(self, start: Offsets, end: Offsets, counts: Counts) -> Totals:
        """The totals after one more commit.

        A partition that is new begins at `start`. One that goes back, or whose topic has another id, is closed at `start` and
        begins again at `end`: only an operator's decision commits that.
        """
        at, closed = dict(self.at), list(self.closed)
        if start.topic != end.topic:  # what was closed without a name is of the topic that is left
            closed = [replace(c, topic=c.topic or start.topic) for c in closed]
        for p, here in start.at.items():
            before = at.get(p, Total(here))
            now = Total(before.start, before.skipped + counts.skipped_at.get(p, 0), before.gaps + counts.gaps.get(p, 0))
            if start.topic_id == end.topic_id and end.at.get(p, here) >= here:
                at[p] = now
            else:
                closed.append(Closed(p, now.start, here, now.skipped, now.gaps, start.topic))
                at.pop(p, None)
        for p, there in end.at.items():
            at.setdefault(p, Total(there))
        return Totals(dict(sorted(at.items())), tuple(closed))


def commit_id(pipeline: str, table_uuid: str, start: Offsets, end: Offsets) -> str:
    """The id of the commit of exactly these records to exactly this table; the same on every try."""
    return str(uuid5(_NAMESPACE, canonical([pipeline, table_uuid, str(start), str(end)])))


@dataclass(frozen=True, slots=True)
class Entry:
    """One snapshot's summary, as far as it is the ledger's: every value as committed, `None` where absent.

    Values of `summary` are plain where the snapshot's are compact.
    """

    snapshot_id: int
    commit_id: str | None
    start: Offsets | None
    end: Offsets | None
    counts: Counts | None
    side: str | None
    run: str | None
    summary: Mapping[str, str]
    at_ms: int = 0
    """When the snapshot was committed, milliseconds since 1970, by the clock of who committed it."""

    @classmethod
    def of(cls, snapshot_id: int, summary: Mapping[str, str], at_ms: int = 0) -> Entry:
        """Read a snapshot's summary; keys of other writers are kept in `summary` only. Raises `LedgerTooNew`."""
        if summary.get(FORMAT, FORMAT_VERSION) not in (FORMAT_VERSION, COMPACT_VERSION):
            raise LedgerTooNew(
                f"its ledger has format {summary[FORMAT]}, this release reads formats {FORMAT_VERSION} and {COMPACT_VERSION}",
                where=f"snapshot {snapshot_id}",
                do=f"Use the release that wrote it ({summary.get(VERSION, 'unknown')}) or a newer one",
            )
        summary = {key: plain(value) if key in MAY_BE_COMPACT else value for key, value in summary.items()}

        def parsed(key: str, parse: Any) -> Any:
            return parse(summary[key]) if key in summary else None

        return cls(
            snapshot_id,
            summary.get(COMMIT_ID),
            parsed(START, Offsets.parse),
            parsed(END, Offsets.parse),
            parsed(COUNTS, Counts.parse),
            summary.get(SIDE),
            summary.get(RUN),
            summary,
            at_ms,
        )

    @property
    def number(self) -> int | None:
        """The number of the newest decision; None in what version 0.1.0 wrote."""
        return int(self.summary[DECISION]) if DECISION in self.summary else None

    @property
    def schema_ids(self) -> tuple[int, ...]:
        """The writer schema ids of the batch; empty where the summary does not say."""
        return tuple(json.loads(self.summary.get(SCHEMA_IDS, "[]")))

    @property
    def valid_through(self) -> int | None:
        """The newest record timestamp, milliseconds since 1970; None where the summary does not say."""
        return int(self.summary[VALID_THROUGH]) if VALID_THROUGH in self.summary else None

    @property
    def rejects_accepted(self) -> Offsets | None:
        """The offsets up to which an operator accepted batches however many are rejected; None if nothing of that is left."""
        return Offsets.parse(self.summary[REJECTS_ACCEPTED]) if REJECTS_ACCEPTED in self.summary else None

    @property
    def is_recount(self) -> bool:
        """Whether this snapshot records an operator's decision that corrects the gaps of the commits before it."""
        return EVENTS in self.summary and json.loads(self.summary[EVENTS]).get("event") == RECOUNT

    @property
    def totals(self) -> Totals | None:
        """The account since the pipeline began; None in a side table, and in tables older than these keys."""
        return Totals.parse(self.summary[TOTALS], self.summary.get(CLOSED_TOPICS)) if TOTALS in self.summary else None
