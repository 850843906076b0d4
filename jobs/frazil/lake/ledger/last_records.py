"""The last record of each partition that a table holds, kept to notice a log that was truncated and has grown again."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256


def property_name(pipeline: str) -> str:
    """Return the table property that holds a pipeline's last records: one value a table, replaced by each commit."""
    return f"frazil.last-records.{pipeline}"


def caught_up_name(pipeline: str) -> str:
    """Return the table property that holds when all of a pipeline's topic had landed."""
    return f"frazil.caught-up.{pipeline}"


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The last time at which all of a compacted topic had landed, microseconds since 1970; `at` is 0 if that is not known.

    `retention_ms` is how long the topic then kept records without a value.
    """

    at: int
    retention_ms: int

    def value(self, topic_id: str, end: str) -> str:
        """Return it with the topic, and the hash of the offsets that it was seen at: a commit may be undone."""
        return f"{self.at} {self.retention_ms} {topic_id} {sha256(end.encode()).hexdigest()[:16]}"

    @classmethod
    def parse(cls, value: str | None, topic_id: str, end: str) -> CaughtUp | None:
        """Return what `value()` wrote, with time 0 if it is of other offsets than `end`; None if there is none of the topic."""
        at, retention_ms, of, _ = value.split() if value is not None else ("0", "0", None, "")
        if of != topic_id:
            return None
        known = cls(int(at), int(retention_ms))
        return known if known.value(topic_id, end) == value else replace(known, at=0)


NOT_KNOWN = CaughtUp(at=0, retention_ms=2**63 - 1)
"""The value for a table with records, none of them of the topic that it continues from: the topic's setting of now counts."""


def properties(pipeline: str, last: LastRecords | None, end: str) -> dict[str, str]:
    """Return the table properties of a commit that ends at the offsets `end`."""
    if last is None:
        return {}
    times = {} if last.caught_up is None else {caught_up_name(pipeline): last.caught_up.value(last.topic_id, end)}
    return {property_name(pipeline): str(last), **times}


@dataclass(frozen=True, slots=True)
class LastRecord:
    """The newest records of one partition, as far as they are known.

    `offset` and `fingerprint` identify the last record that was read; both are None if none is known. `epoch` is the
    partition's leader epoch at that time, None if the broker did not say. `newest_ms` is the newest timestamp of its records,
    in milliseconds since 1970.
    """

    offset: int | None = None
    fingerprint: str | None = None
    epoch: int | None = None
    newest_ms: int | None = None


@dataclass(frozen=True, slots=True)
class LastRecords:
    """The last records of a topic, by partition.

    `caught_up` is of upsert tables, None before the first record. It is a property of its own.
    """

    topic_id: str
    at: Mapping[int, LastRecord] = field(default_factory=dict)
    caught_up: CaughtUp | None = None

    def __str__(self) -> str:
        """Return JSON: the topic's id, and partition -> [offset, fingerprint, epoch, newest timestamp]."""
        at = {str(p): [r.offset, r.fingerprint, r.epoch, r.newest_ms] for p, r in sorted(self.at.items())}
        return json.dumps({"topic_id": self.topic_id, "at": at}, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str | None, topic_id: str) -> LastRecords:
        """Return what `str()` wrote; nothing if `text` is None, or of a topic with another id."""
        document = json.loads(text) if text is not None else {}
        if document.get("topic_id") != topic_id:
            return cls(topic_id)
        return cls(topic_id, {int(p): LastRecord(*record) for p, record in document["at"].items()})

    def after(self, seen: Mapping[int, LastRecord]) -> LastRecords:
        """Return the last records after a batch in which `seen` was read."""
        at = dict(self.at)
        for partition, record in seen.items():
            before = at.get(partition, LastRecord())
            newest = max((ms for ms in (before.newest_ms, record.newest_ms) if ms is not None), default=None)
            at[partition] = replace(before if record.offset is None else record, newest_ms=newest)
        return replace(self, at=at)

    def before(self, next_offsets: Mapping[int, int]) -> LastRecords:
        """Return the same without what commits after `next_offsets` read, which were undone since."""
        later = [p for p, r in self.at.items() if r.offset is not None and r.offset >= next_offsets.get(p, 0)]
        return self.forgotten(later)

    def forgotten(self, partitions: Collection[int]) -> LastRecords:
        """Return the same, but that of `partitions` no record is known any more."""
        return replace(self, at={p: r for p, r in self.at.items() if p not in partitions})

    def identified(self, next_offsets: Mapping[int, int]) -> dict[int, tuple[int, str]]:
        """Return offset and fingerprint of each last record that is known and is before `next_offsets`."""
        return {
            p: (r.offset, r.fingerprint)
            for p, r in self.at.items()
            if r.offset is not None and r.fingerprint is not None and r.offset < next_offsets.get(p, 0)
        }

    def valid_through(self, partitions: Collection[int]) -> int | None:
        """Return the minimum over `partitions` of each one's newest timestamp; None if one of them has none."""
        newest = [self.at[p].newest_ms if p in self.at else None for p in partitions]
        known = [ms for ms in newest if ms is not None]
        return min(known) if known and len(known) == len(newest) else None


def topic_of(text: str) -> str | None:
    """Return the id of the topic that the last records are of, as `str()` of them wrote it."""
    topic_id: str | None = json.loads(text).get("topic_id")
    return topic_id
