"""The lease: one maintainer at a table. Kept in the table itself, taken by compare-and-set, and ended by the clock.

The lease saves work; safety does not depend on it. Two maintainers that overlap, as clocks may make them, cost each other
conflicts: Iceberg refuses a rewrite whose files no longer exist, and expiring twice expires once.

A lease is a table property with holder and end, and a tag `frazil-maintainer-<number>` at the head. The tag is what
makes it compare-and-set on every catalog: the transaction is refused if anything else was committed in between (see
`lake/commit/commit_rows_and_offsets.py`), and a REST catalog, which only compares what a change requires, requires that the tag
of the next number does not exist yet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace

from py4j.protocol import Py4JJavaError

from frazil.job.context import JobContext
from frazil.lake.iceberg_java import failed
from frazil.lake.java_classes import Java, entries
from frazil.lake.ledger.next_offsets import canonical
from frazil.maintain.choose_upkeep import Mark, remembered

PROPERTY = "frazil.upkeep"
TAG = "frazil-maintainer-"
ATTEMPTS = 10
_TAG_AGE_MS = 86_400_000  # what a crashed maintainer's tag pins is let go by expiry after a day


@dataclass(frozen=True, slots=True)
class Lease:
    """The table's entry about its maintainer. `until_ms` in milliseconds since 1970; without `holder` it is free.

    `marks` remember when the table had which sequence number.
    """

    number: int = 0
    holder: str | None = None
    until_ms: int = 0
    marks: tuple[Mark, ...] = ()

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Lease:
        """Read it from a table's properties; one that cannot be read counts as free."""
        try:
            document = json.loads(properties.get(PROPERTY, "{}"))
            marks = tuple(Mark(int(sequence), int(at)) for sequence, at in document.get("marks", ()))
            return cls(int(document.get("number", 0)), document.get("holder"), int(document.get("until_ms", 0)), marks)
        except (ValueError, TypeError, AttributeError):
            return cls()

    def __str__(self) -> str:
        """Return canonical JSON, as the property holds it."""
        return canonical({**asdict(self), "marks": [[mark.sequence, mark.at_ms] for mark in self.marks]})

    def is_free(self, holder: str, now_ms: int) -> bool:
        """Return whether `holder` may take it."""
        return self.holder in (None, holder) or self.until_ms <= now_ms


def take(job: JobContext, table: str, *, seconds: float) -> Lease | None:
    """Take the lease of a table that has a snapshot, or renew it, for so many seconds; None if another run holds it."""
    now_ms = job.now_ms()

    def taken(held: Lease) -> Lease | None:
        if not held.is_free(job.run, now_ms):
            return None
        return replace(held, number=held.number + 1, holder=job.run, until_ms=now_ms + round(seconds * 1000))

    return _change(job, table, taken, now_ms=now_ms)


def release(job: JobContext, table: str) -> None:
    """Give the lease back, if this run still holds it. If that fails, the lease expires."""

    def freed(held: Lease) -> Lease | None:
        return replace(held, holder=None, until_ms=0) if held.holder == job.run else None

    _change(job, table, freed, now_ms=job.now_ms())


def _change(job: JobContext, table: str, next_of: Callable[[Lease], Lease | None], *, now_ms: int) -> Lease | None:
    failure: Py4JJavaError | None = None
    for attempt in range(ATTEMPTS):
        if attempt:
            job.wait(min(5.0, 0.05 * 2**attempt))
        try:
            transaction = job.iceberg.load(table).newTransaction()
            base = transaction.table()
            wanted = next_of(Lease.of(entries(base.properties())))
            if wanted is None:
                return None
            if wanted.holder is not None:
                mark = Mark(int(base.currentSnapshot().sequenceNumber()), now_ms)
                wanted = replace(wanted, marks=remembered(wanted.marks, mark))
            _fill(transaction, base, wanted)
            job.failpoint("lease.filled")
            transaction.commitTransaction()
            return wanted
        except Py4JJavaError as error:
            failure = error
    assert failure is not None
    what, do = "the maintainer's lease could not be written", "Nothing was done. Run again"
    raise failed(what, failure, where=f"table {table}", do=do)


def _fill(transaction: Java, base: Java, lease: Lease) -> None:
    transaction.updateProperties().set(PROPERTY, str(lease)).commit()
    refs = transaction.manageSnapshots()
    for name in [str(ref) for ref in base.refs().keySet() if str(ref).startswith(TAG)]:
        refs = refs.removeTag(name)
    if lease.holder is not None:
        tag = f"{TAG}{lease.number}"
        refs = refs.createTag(tag, base.currentSnapshot().snapshotId()).setMaxRefAgeMs(tag, _TAG_AGE_MS)
    refs.commit()
