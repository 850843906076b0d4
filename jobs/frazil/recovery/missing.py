"""The records that a pipeline's tables lack, by the totals of its ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from frazil.declaration import Pipeline
from frazil.errors import InvalidInput
from frazil.lake.ledger import Entry
from frazil.lake.offsets import Offsets
from frazil.lake.totals import Total


def missing(pipeline: Pipeline, entry: Entry, end: Offsets, counted: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return how many records up to `end` are in neither table, by partition, by the totals that `entry` has.

    `counted` are rows and dead letters by partition, of one source each. Raises `InvalidInput` if the ledger has no totals, or if
    more was counted than the totals account for.
    """
    totals, table = entry.totals, pipeline.table
    if totals is None:
        raise InvalidInput(
            "the ledger has no totals, so the missing dead letters cannot be counted", where=f"table {table.identifier}"
        )
    counts, lost = list(counted), dict[int, int]()
    for p in {*end.at, *totals.at, *(c.partition for c in totals.closed)}:
        accounts = [(c.start, c.end, c.skipped, c.gaps) for c in totals.closed if c.partition == p]
        if p in totals.at or p in end.at:
            now = totals.at.get(p, Total(0))  # a partition that was added later begins at 0
            accounts.append((now.start, end.at.get(p, now.start), now.skipped, now.gaps))
        expected = sum(to - start - skipped - gaps for start, to, skipped, gaps in accounts)
        lost[p] = expected - sum(rows.get(p, 0) for rows in counts)
    if any(n < 0 for n in lost.values()):
        raise InvalidInput(
            f"there are more rows and dead letters than the ledger accounts for, by partition: {lost}",
            where=f"tables {table.identifier} and {table.dead_letters}",
            do=f"`frazil verify {pipeline.name} --deep` says what is wrong; repair that first",
        )
    return {p: n for p, n in sorted(lost.items()) if n}
