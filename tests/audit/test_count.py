from __future__ import annotations

import pytest

from frazil.audit import count
from frazil.audit.count import Tally
from frazil.audit.runs import Range, of_ranges


def test_a_tally_tells_rows_set_and_excess() -> None:
    tally = Tally()
    for runs in ([Range(0, 10)], [Range(10, 20)], [Range(5, 7)], [Range(5, 6)]):
        tally.add(of_ranges(runs))
    tally.unite()
    assert (tally.rows, tally.set.ranges()) == (23, (Range(0, 20),))
    assert sum(excess.offsets for excess in tally.excess) == 3


def test_a_tally_keeps_memory_to_what_is_distinct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count, "COALESCE", 100)
    tally = Tally()
    for bucket in range(8):  # as a table partitioned by bucket(8, …) scatters a batch over its files
        tally.add(of_ranges(Range(o, o + 1) for o in range(bucket, 10_000, 8)))
    assert len(tally.set) < 10_000
    tally.unite()
    assert (len(tally.set), tally.rows, tally.excess) == (1, 10_000, [])
