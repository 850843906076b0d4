"""Choose the upkeep that a table needs. Pure: facts in, choices out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from frazil.lake.rewrite import DELETED_SHARE, MANY_DELETE_FILES, Group
from frazil.lake.snapshot_retention import DAY_MS, History, Past, expirable

HOUR_MS = 3_600_000
ORPHANS_AT_LEAST_MS = 3 * DAY_MS
MARKS = 32


class Why(StrEnum):
    """The reason why a group of files is compacted, or left.

    `CLOSED`: nothing was added to it for so long that the ingest no longer writes this partition. `FULL`: the partition
    may still grow, but its small files fill one of the target size, which then stays. `MANY`: there are so many that
    reading suffers; the remainder is rewritten once more when it has grown. `OPEN`: the ingest still writes it; later.
    `DELETES`: another engine deleted rows of an append table by delete files: left for that engine. `DELETED`: many rows of a
    upsert table are deleted, and readers pass over them.
    """

    CLOSED = "closed"
    FULL = "full"
    MANY = "many"
    OPEN = "open"
    DELETES = "deletes"
    DELETED = "deleted"

    @property
    def is_compacted(self) -> bool:
        """Return whether this is a reason to compact."""
        return self in {Why.CLOSED, Why.FULL, Why.MANY, Why.DELETED}


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment and the table's sequence number then: files up to it are at least as old."""

    sequence: int
    at_ms: int


def added_by(sequence: int, marks: Iterable[Mark]) -> int | None:
    """Return the latest time at which files of a sequence number can have been added, in milliseconds since 1970; None is unknown.

    Kept snapshots say so; before them, marks of earlier maintenance do.
    """
    return min((mark.at_ms for mark in marks if mark.sequence >= sequence), default=None)


def why(
    group: Group, marks: Sequence[Mark], *, since_ms: int, target_bytes: int, many_files: int, is_state: bool
) -> Why:
    """Return why a group is rewritten, or why it is left.

    A partition is closed if nothing was added since `since_ms`; a full file has `target_bytes`. `is_state`: it is an upsert
    table, so that its deletes are Frazil's own.
    """
    if group.deletes and not is_state:
        return Why.DELETES
    if (
        group.deletes >= MANY_DELETE_FILES
        or group.deleted + group.maybe_deleted >= group.rows * float(DELETED_SHARE) > 0
    ):
        return Why.DELETED
    added = added_by(group.newest, marks)
    if added is not None and added < since_ms:
        return Why.CLOSED
    if group.bytes >= target_bytes:
        return Why.FULL
    return Why.MANY if group.files >= many_files else Why.OPEN


def marks_of(history: History) -> list[Mark]:
    """Return the marks of when files were added, from the snapshots."""
    return [Mark(s.sequence, s.at_ms) for s in history.snapshots]


def remembered(marks: Sequence[Mark], new: Mark) -> tuple[Mark, ...]:
    """Return the marks to keep when a new one is made: it, and of the others the newest that are an hour apart."""
    kept = [mark for mark in marks if mark.sequence <= new.sequence and mark.at_ms <= new.at_ms]
    if len(kept) > 1 and kept[-1].at_ms - kept[-2].at_ms < HOUR_MS:
        kept.pop()
    return (*kept[-(MARKS - 1) :], new)


def to_carry(history: History, tag: str, *, keep: int, since_ms: int) -> Past | None:
    """Return the snapshot whose tag must move to the head, or None; `keep` and `since_ms` are those of `expirable`.

    The tag keeps it, and all files it refers to, beyond the declared retention; or another tool expired snapshots between it
    and the head, so that the metadata no longer show that the table was not rolled back.
    """
    tagged = history.snapshot(history.refs.get(tag))
    if tagged is None or tagged.id == history.head_id:
        return None
    if tagged.id not in history.lineage():
        return tagged
    going = expirable(history, keep=keep, since_ms=since_ms, disregard=[tag], with_data=True)
    return tagged if tagged.id in going else None


def namer(named: Iterable[str]) -> Callable[[str], bool]:
    """Return whether a location is one of those that an open decision names, so that its file must stay."""
    protected = {path_of(location) for location in named}
    return lambda location: path_of(location) in protected


def path_of(location: str) -> str:
    """Return a location without scheme: `file:/a`, `file:///a` and `/a` are one file, and so are `s3://` and `s3a://`."""
    scheme, colon, rest = location.partition(":")
    return f"/{rest.lstrip('/')}" if colon and "/" not in scheme else f"/{location.lstrip('/')}"
