"""The account of a pipeline's records: the counts of one batch, and the totals since the pipeline began."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from frazil.lake.ledger.next_offsets import Offsets, canonical

_OF_SOME = (
    *("deletes", "superseded", "late", "marked", "order_ties", "repeated_deletes", "deleted_at"),
    *("filtered", "filtered_at", "routed_at", "unmatched", "late_events", "recovered"),
)
_BY_PARTITION = {"skipped_at", "gaps", "deleted_at", "filtered_at", "routed_at"}


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of one batch: read + recovered = written + deletes + repeated_deletes + superseded + late + the sums of rejected,
    skipped and filtered. `recovered` dead letters land by a replay, which reads nothing.

    In an upsert table, `deletes` are the last records of keys that they delete, `superseded` records had a later one of
    their key in the batch, and `late` ones found a later row in the table. `repeated_deletes` are directly after a delete of their
    key in the batch. `marked` deletes wrote their row again, as deleted, and
    `order_ties` keys had the same order in two partitions. All are 0 in an append table; what is 0 is not stored.

    `filtered` counts records that a declared route or condition leaves out, by reason, and `filtered_at` by partition; `routed_at`
    those of them that are another table's. `unmatched` records
    did not match it and deleted the row of their key: they landed. `late_events` are rows whose event is late by the declaration.
    `rejected` counts records in the dead-letter table by reason; `skipped` those that the declaration lets go, by reason, and
    `skipped_at` by partition. `gaps` are offsets without a record, by partition, as counted when the batch was read: a compacted
    topic and the markers of transactions leave them; on a plain topic there are none. `deleted_at` are rows that another engine
    deleted, by partition, as an operator accepted.
    """

    read: int = 0
    written: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    skipped_at: Mapping[int, int] = field(default_factory=dict)
    gaps: Mapping[int, int] = field(default_factory=dict)
    deletes: int = 0
    superseded: int = 0
    late: int = 0
    marked: int = 0
    order_ties: int = 0
    repeated_deletes: int = 0
    deleted_at: Mapping[int, int] = field(default_factory=dict)
    filtered: Mapping[str, int] = field(default_factory=dict)
    filtered_at: Mapping[int, int] = field(default_factory=dict)
    routed_at: Mapping[int, int] = field(default_factory=dict)
    unmatched: int = 0
    late_events: int = 0
    recovered: int = 0

    def __str__(self) -> str:
        """Return canonical JSON, as the summary holds it."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        for name in ("rejected", "skipped", "filtered", *_BY_PARTITION):
            values[name] = {str(key): number for key, number in values[name].items()}
        return canonical({name: value for name, value in values.items() if value or name not in _OF_SOME})

    @classmethod
    def parse(cls, text: str) -> Counts:
        """Return the counts that `str()` wrote. Raises `KeyError` if one is missing that it always writes."""
        document = json.loads(text)
        names = [one.name for one in fields(cls) if one.name in document or one.name not in _OF_SOME]
        found = {name: document[name] for name in names}
        for name in _BY_PARTITION & found.keys():
            found[name] = {int(partition): number for partition, number in found[name].items()}
        return cls(**found)

    def plus(self, other: Counts) -> Counts:
        """Return the counts of both batches as one."""
        sums: dict[str, Any] = {}
        for one in fields(self):
            mine, more = getattr(self, one.name), getattr(other, one.name)
            if isinstance(mine, int):
                sums[one.name] = mine + more
            else:
                sums[one.name] = {key: mine.get(key, 0) + more.get(key, 0) for key in sorted({*mine, *more})}
        return Counts(**sums)

    @property
    def adds_up(self) -> bool:
        """The one equation of a batch."""
        others = (self.rejected, self.skipped, self.filtered)
        return self.read + self.recovered == self.landed + sum(sum(each.values()) for each in others)

    @property
    def own(self) -> int:
        """The records that were read and are no other table's."""
        return self.read - sum(self.routed_at.values())

    @property
    def landed(self) -> int:
        """The records that took effect in the table, or that a later one of the batch or of the table replaced."""
        return self.written + self.deletes + self.repeated_deletes + self.superseded + self.late


@dataclass(frozen=True, slots=True)
class Total:
    """One partition's account since `start`, the offset its reading began at.

    It has declared skips, offsets without a record, rows that another engine deleted, and filtered records; `routed` of these are
    another table's.
    """

    start: int
    skipped: int = 0
    gaps: int = 0
    deleted: int = 0
    filtered: int = 0
    routed: int = 0


@dataclass(frozen=True, slots=True)
class Closed:
    """The account of a topic's partition that an operator's decision ended at `end`: its offsets may come again."""

    topic: str
    partition: int
    start: int
    end: int
    skipped: int = 0
    gaps: int = 0
    deleted: int = 0
    filtered: int = 0
    routed: int = 0


@dataclass(frozen=True, slots=True)
class Totals:
    """All that has neither row nor dead letter, by partition, since the pipeline began.

    Each commit carries its base's totals on, so that the account outlives the snapshots it was made of. `closed` is empty
    unless a topic was re-created, or truncated below what the table held, and the operator went on.
    """

    at: Mapping[int, Total] = field(default_factory=dict)
    closed: tuple[Closed, ...] = ()

    def __str__(self) -> str:
        """Canonical JSON: partition -> [start, skipped, gaps]; `closed` -> [partition, start, end, skipped, gaps] each.

        The numbers of deleted rows, of filtered and of routed records are further members, if there are any.
        """
        document: dict[str, Any] = {str(p): [t.start, t.skipped, t.gaps, *_some(t)] for p, t in self.at.items()}
        if self.closed:
            document["closed"] = [[c.partition, c.start, c.end, c.skipped, c.gaps, *_some(c)] for c in self.closed]
        return canonical(document)

    @property
    def closed_topics(self) -> str | None:
        """Canonical JSON of the closed accounts' topics, in their order; None if there are none."""
        return canonical([c.topic for c in self.closed]) if self.closed else None

    @classmethod
    def parse(cls, text: str, topics: str | None = None) -> Totals:
        """Return the totals that `str()` wrote, with the topics that `closed_topics` wrote."""
        document = json.loads(text)
        named = zip(json.loads(topics or "[]"), document.pop("closed", ()), strict=True)
        closed = tuple(Closed(topic, *account) for topic, account in named)
        return cls({int(p): Total(*account) for p, account in document.items()}, closed)

    def after(self, start: Offsets, end: Offsets, counts: Counts) -> Totals:
        """Return the totals after one more commit.

        A new partition begins at `start`. One that goes back, or whose topic has another id, is closed at `start` and
        begins again at `end`: only an operator's decision commits that. What is counted of a partition that the topic has no
        more is added to its last closed account.
        """
        at, closed = dict(self.at), list(self.closed)
        for p, here in start.at.items():
            before = at.get(p, Total(here))
            now = Total(
                before.start,
                before.skipped + counts.skipped_at.get(p, 0),
                before.gaps + counts.gaps.get(p, 0),
                before.deleted + counts.deleted_at.get(p, 0),
                before.filtered + counts.filtered_at.get(p, 0),
                before.routed + counts.routed_at.get(p, 0),
            )
            if start.topic_id == end.topic_id and end.at.get(p, here) >= here:
                at[p] = now
            else:
                numbers = now.skipped, now.gaps, now.deleted, now.filtered, now.routed
                closed.append(Closed(start.topic, p, now.start, here, *numbers))
                at.pop(p, None)
        for p in sorted((counts.gaps.keys() | counts.deleted_at.keys()) - start.at.keys()):
            number = max((n for n, account in enumerate(closed) if account.partition == p), default=None)
            if number is not None:
                one = closed[number]
                gaps, deleted = one.gaps + counts.gaps.get(p, 0), one.deleted + counts.deleted_at.get(p, 0)
                closed[number] = replace(one, gaps=gaps, deleted=deleted)
        for p, there in end.at.items():
            at.setdefault(p, Total(there))
        return Totals(dict(sorted(at.items())), tuple(closed))

    @property
    def deleted(self) -> int:
        """The rows that other engines deleted, as operators accepted."""
        return sum(one.deleted for one in self.at.values()) + sum(one.deleted for one in self.closed)

    @property
    def filtered(self) -> int:
        """The records that a declared route or condition left out."""
        return sum(one.filtered for one in self.at.values()) + sum(one.filtered for one in self.closed)


def absent(account: Total | Closed) -> int:
    """Return how many offsets of an account are neither a row nor a dead letter."""
    return account.skipped + account.gaps + account.deleted + account.filtered


def _some(account: Total | Closed) -> list[int]:
    found = [account.deleted, account.filtered, account.routed]
    while found and not found[-1]:
        found.pop()
    return found
