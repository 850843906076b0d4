from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.audit.files.bitmap import WORD
from frazil.audit.files.count import claims_of
from frazil.audit.files.file_scan import Columns, Source
from frazil.audit.files.window import Role
from frazil.audit.files.windows import Box, Boxes, Placement, Stretch, contains, stretches, tile, without
from frazil.audit.finding import Range
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.read.data_files import Bounds, DataFile
from frazil.lake.read.stored_tables import Snapshot

ranges = st.lists(
    st.builds(lambda start, size: Range(start, start + size), st.integers(0, 400), st.integers(0, 300)), max_size=3
)
read = st.dictionaries(st.integers(0, 3), ranges, max_size=3)
Place = tuple[int, int]


def places(parts: tuple[Stretch, ...] | list[Stretch]) -> Counter[Place]:
    return Counter((s.partition, offset) for s in parts for offset in range(s.range.start, s.range.end))


def lived(read: dict[int, list[Range]]) -> Counter[Place]:
    return Counter((p, offset) for p, parts in read.items() for one in parts for offset in range(one.start, one.end))


@given(read)
def test_stretches_are_disjoint_and_know_how_often_an_offset_lived(read: dict[int, list[Range]]) -> None:
    found = stretches(read)
    assert Counter({place: s.lives for s in found for place in places([s])}) == lived(read)
    assert set(places(found).values()) <= {1}


@given(read, read)
def test_what_is_done_is_left_out(read: dict[int, list[Range]], done: dict[int, list[Range]]) -> None:
    every, gone = stretches(read), stretches(done)
    left = without(every, gone)
    assert set(places(left)) == set(places(every)) - set(places(gone))
    assert contains(every, left) == all(s.lives == 1 for s in left)


@given(read, st.integers(64, 500))
def test_windows_have_each_offset_once_and_are_small(read: dict[int, list[Range]], limit: int) -> None:
    every = stretches(read)
    windows = tile(every, limit)
    assert places([part for window in windows for part in window]) == places(every)
    # Cuts are multiples of a word, so that a window may be wider by one for each stretch.
    assert all(sum(map(len, window)) <= limit + (WORD + 1) * len(every) for window in windows)


@given(read, st.lists(st.tuples(st.integers(-1, 4), st.integers(-5, 800)), max_size=50), st.integers(64, 500))
def test_each_offset_has_an_address_of_its_own(read: dict[int, list[Range]], rows: list[Place], limit: int) -> None:
    spans = stretches(read)
    placement = Placement(spans)
    known = lived(read)
    for some in (rows, [row for row in rows if row[0] == 1]):
        found = placement.place(np.array([p for p, _ in some], np.int32), np.array([o for _, o in some], np.int64))
        assert [address >= 0 for address in found.tolist()] == [row in known for row in some]
        inside = {row: a for row, a in zip(some, found.tolist(), strict=True) if a >= 0}
        assert len(set(inside.values())) == len(inside)
    for segment in tile(spans, limit):
        for part in segment:
            at = placement.place(np.array([part.partition]), np.array([part.range.start]))
            assert placement.words(part).start * WORD == at[0]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 700), st.integers(0, 300)), max_size=8),
    read,
)
def test_boxes_touch_what_they_share_an_offset_with(
    corners: list[tuple[int, int, int, int]], read: dict[int, list[Range]]
) -> None:
    boxes = [Box(min(a, b), max(a, b), low, low + size) for a, b, low, size in corners]
    parts = stretches(read)
    found = Boxes([*boxes, None]).touching(parts)
    expected = [
        any(
            box.partition_low <= p <= box.partition_high and box.offset_low <= o <= box.offset_high
            for p, o in places(parts)
        )
        for box in boxes
    ]
    assert found.tolist() == [*expected, True]


def test_windows_share_every_partition_alike() -> None:
    first, second = tile([Stretch(0, Range(0, 1280)), Stretch(1, Range(10, 138))], 704)
    assert first == (Stretch(0, Range(0, 640)), Stretch(1, Range(10, 74)))
    assert second == (Stretch(0, Range(640, 1280)), Stretch(1, Range(74, 138)))


def test_a_claim_narrows_a_box_of_several_partitions() -> None:
    box, claim = Box(0, 2, 10, 5_000), {0: Range(4_990, 5_001), 1: Range(10, 20), 2: Range(7, 7)}
    found = Boxes([box, box], [claim, None])
    for part, touched in (
        (Stretch(0, Range(0, 4_990)), False),
        (Stretch(0, Range(0, 4_991)), True),
        (Stretch(1, Range(19, 30)), True),
        (Stretch(1, Range(20, 30)), False),
        (Stretch(2, Range(0, 100)), False),
        (Stretch(3, Range(10, 20)), False),
    ):
        assert found.touching([part]).tolist() == [touched, part.partition < 3]


@pytest.mark.parametrize(("accepted", "claims"), [({}, 1), ({ledger.EVENTS: '{"event":"rolled-back-hold"}'}, 0)])
def test_an_operators_decision_says_nothing_of_the_offsets_of_its_files(accepted: dict[str, str], claims: int) -> None:
    """It may append dead letters that were decided before it, and its own offsets are then behind theirs."""
    offsets = str(Offsets("t", "T", {0: 10, 1: 10}))
    summary = {ledger.START: offsets, ledger.END: offsets, **accepted}
    snapshot = Snapshot(1, None, 1, datetime.now(UTC), "append", summary, "")
    bounds = {"partition": Bounds(0, 1, 0), "offset": Bounds(0, 9, 0)}
    file = DataFile("f", "PARQUET", 2, 1, 0, None, bounds, snapshot_id=1)
    table: Any = SimpleNamespace(snapshots={1: snapshot})
    source = Source(Role.DEAD_LETTERS, table, Columns("topic", "partition", "offset"), (file,))
    assert len(claims_of(source)) == claims
