"""Keys that are times, of files with different units or beyond Python's calendar, are compared by their value."""

from __future__ import annotations

import pyarrow as pa

from frazil.audit.accounts.state_rows import _comparable


def test_a_timestamp_is_the_same_in_each_unit_and_beyond_the_year_9999() -> None:
    us = pa.array([1_767_225_600_000_000, 1_767_225_600_000_000_000, None], pa.timestamp("us", "UTC"))
    assert _comparable(us).to_pylist() == [1_767_225_600_000_000, 1_767_225_600_000_000_000, None]
    for unit in ("ms", "ns"):
        assert _comparable(us[:1].cast(pa.timestamp(unit, "UTC"))).to_pylist() == [1_767_225_600_000_000]
    assert _comparable(pa.array([5_000_000], pa.date32())).to_pylist() == [5_000_000]
    assert _comparable(pa.array(["a"])).to_pylist() == ["a"]
