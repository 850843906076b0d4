"""The records that a pipeline's tables lack, by the totals of its ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from frazil.declaration import Pipeline
from frazil.errors import InvalidInput
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.offsets import Offsets
from frazil.lake.ledger.totals import Total


def missing(pipeline: Pipeline, entry: Entry, end: Offsets, counted: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return how many records up to `end` are in neither table, by partition, by the totals that `entry` has.

    `counted` are rows and dead letters by partition, of one source each. Raises `InvalidInput` if the ledger has no totals, or if
    more was counted than the totals account for.
    """
    counts = list(counted)
    lost = {p: n - sum(rows.get(p, 0) for rows in counts) for p, n in _expected(pipeline, entry, end).items()}
    if any(n < 0 for n in lost.values()):
        raise _too_many(pipeline, lost)
    return {p: n for p, n in sorted(lost.items()) if n}


def missing_of_state(
    pipeline: Pipeline, entry: Entry, end: Offsets, counted: Iterable[Mapping[int, int]]
) -> dict[int, int]:
    """Return the same for an upsert table, where `counted` are dead letters only: its commits carry on how many landed.

    They do so for all partitions together. What is lost is therefore named for the first partitions that can lack so much.
    """
    assert entry.keys is not None
    counts = list(counted)
    may_lack = {p: n - sum(rows.get(p, 0) for rows in counts) for p, n in _expected(pipeline, entry, end).items()}
    left = sum(may_lack.values()) - entry.keys.records
    if left < 0 or any(n < 0 for n in may_lack.values()):
        raise _too_many(pipeline, may_lack)
    lost = dict[int, int]()
    for p, n in sorted(may_lack.items()):
        lost[p] = min(n, left)
        left -= lost[p]
    return {p: n for p, n in lost.items() if n}


def _expected(pipeline: Pipeline, entry: Entry, end: Offsets) -> dict[int, int]:
    """Return how many rows and dead letters the ledger accounts for up to `end`, by partition."""
    totals = entry.totals
    if totals is None:
        raise InvalidInput(
            "the ledger has no totals, so the missing dead letters cannot be counted",
            where=f"table {pipeline.table.identifier}",
        )
    expected = dict[int, int]()
    for p in {*end.at, *totals.at, *(c.partition for c in totals.closed)}:
        accounts = [(c.start, c.end, c.skipped, c.gaps + c.deleted) for c in totals.closed if c.partition == p]
        if p in totals.at or p in end.at:
            now = totals.at.get(p, Total(0))  # a partition that was added later begins at 0
            accounts.append((now.start, end.at.get(p, now.start), now.skipped, now.gaps + now.deleted))
        expected[p] = sum(to - start - skipped - gaps for start, to, skipped, gaps in accounts)
    return expected


def _too_many(pipeline: Pipeline, lost: Mapping[int, int]) -> InvalidInput:
    table = pipeline.table
    return InvalidInput(
        f"there are more rows and dead letters than the ledger accounts for, by partition: {dict(lost)}",
        where=f"tables {table.identifier} and {table.dead_letters}",
        do=f"`frazil verify {pipeline.name} --deep` says what is wrong; repair that first",
    )
