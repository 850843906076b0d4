"""Any sequence of files, deletes, merges: the places of keys are those of a dictionary."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.upsert.key_index import index, sorted_entries
from frazil.upsert.key_index.index import NOWHERE, KeyedRows, PlacesOfKeys
from frazil.upsert.key_index.sorted_entries import SortedEntries

KEYS = 12
"""So few keys that files have several rows of one, and one half of the hash is that of other keys."""
Where = tuple[str, int, int]


def hash_of(keys: Sequence[int]) -> tuple[sorted_entries.U64, sorted_entries.U64]:
    """Return hashes of which both halves are those of other keys too, at both ends of what 64 bits hold."""
    high = np.array([2**64 - 1 if key % 3 == 0 else key % 3 - 1 for key in keys], np.uint64)
    return high, np.array([key // 3 for key in keys], np.uint64)


class Oracle:
    """An index, and a dictionary that has the same rows."""

    def __init__(self) -> None:
        self.places, self.rows, self.files = PlacesOfKeys(), dict[Where, int](), 0

    def add(self, *files: Sequence[tuple[int, int]]) -> None:
        """Add data files of these keys and Kafka partitions."""
        paths = [f"file-{self.files + n}" for n in range(len(files))]
        self.files += len(files)
        rows = [(n, at, key, of) for n, file in enumerate(files) for at, (key, of) in enumerate(file)]
        self.rows |= {(paths[n], at, of): key for n, at, key, of in rows}
        number, at, keys, of = (np.array([row[n] for row in rows], np.int64) for n in range(4))
        self.places.add(KeyedRows(paths, *hash_of(keys.tolist()), number, at, of))

    def forget(self, number: int) -> None:
        """Forget a data file, if there is one."""
        if paths := sorted({path for path, *_ in self.rows}):
            path = paths[number % len(paths)]
            self.places.forget([path])
            self.rows = {where: key for where, key in self.rows.items() if where[0] != path}

    def delete(self, keys: Sequence[int]) -> None:
        """Delete the rows of keys."""
        self.places.delete(self.places.look(*hash_of(keys)))
        self.rows = {where: key for where, key in self.rows.items() if key not in keys}

    def check(self) -> None:
        """Assert that each key's rows are found, and how many there are."""
        found = self.places.look(*hash_of(range(KEYS)))
        there = zip(found.path, found.position.tolist(), found.partition.tolist(), found.key.tolist(), strict=True)
        assert sorted(there) == sorted((*where, key) for where, key in self.rows.items())
        assert self.places.rows == len(self.rows)


FILE = st.lists(st.tuples(st.integers(0, KEYS - 1), st.integers(NOWHERE, 3)), max_size=9)
STEP = st.one_of(
    st.tuples(st.just("add"), st.lists(FILE, max_size=3).map(tuple)),
    st.tuples(st.just("forget"), st.integers(0, 99)),
    st.tuples(st.just("delete"), st.lists(st.integers(0, KEYS - 1), unique=True)),
    st.tuples(st.just("settle"), st.integers(1, 3)),
)


@settings(max_examples=100, deadline=None)
@given(steps=st.lists(STEP, max_size=12), in_memory=st.integers(1, 20), at_once=st.integers(1, 40))
def test_any_sequence_of_changes_leaves_the_rows_of_a_dictionary(
    steps: Sequence[tuple[str, object]], in_memory: int, at_once: int
) -> None:
    with patch.object(index, "LEAST_IN_MEMORY", in_memory), patch.object(sorted_entries, "STEP", at_once):
        oracle = Oracle()
        for name, what in steps:
            if name == "add":
                oracle.add(*what)  # type: ignore[misc]
            elif name == "forget":
                oracle.forget(what)  # type: ignore[arg-type]
            elif name == "delete":
                oracle.delete(what)  # type: ignore[arg-type]
            else:
                oracle.places.settle(what)  # type: ignore[arg-type]
            oracle.check()


def test_files_have_no_name_and_24_bytes_a_row(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("index")
    found, rows = PlacesOfKeys(str(folder)), 300_000
    rng, zeros = np.random.default_rng(1), np.zeros(rows, np.int64)
    high, low = rng.integers(0, 2**64, (2, rows), np.uint64)
    found.add(KeyedRows(["a"], high, low, zeros, np.arange(rows), zeros))
    assert found.bytes == 24 * rows
    assert list(folder.iterdir()) == []
    assert np.array_equal(np.sort(found.look(high, low).position), np.arange(rows))


def test_merging_takes_two_and_a_half_times_the_disk_at_most() -> None:
    found, used, each = PlacesOfKeys(), list[int](), 3_000
    rng, zeros = np.random.default_rng(2), np.zeros(each, np.int64)

    def noted(*given: Any) -> SortedEntries:
        made = sorted_entries.on_disk(*given)
        used.append(found.bytes + 24 * len(made))
        return made

    with patch.object(index, "LEAST_IN_MEMORY", each // 2), patch.object(index, "on_disk", noted):
        for number in range(40):
            high, low = rng.integers(0, 2**64, (2, each), np.uint64)
            found.add(KeyedRows([f"file {number}"], high, low, zeros, np.arange(each), zeros))
            found.settle()
            assert max(used) <= 2.5 * 24 * found.rows
    assert max(used) > 1.5 * 24 * found.rows  # it was merged


def test_a_disk_without_room_raises_before_anything_is_mapped(tmp_path_factory: pytest.TempPathFactory) -> None:
    found, rows = PlacesOfKeys(), index.LEAST_IN_MEMORY + 1
    made, zeros = np.arange(rows, dtype=np.uint64), np.zeros(rows, np.int64)
    few = KeyedRows(["few"], made[:5], made[:5], zeros[:5], zeros[:5], zeros[:5])
    found.add(few)

    class Full:
        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def write(self, _: bytes) -> int:
            raise OSError(28, "No space left on device")

    with patch.object(tempfile, "TemporaryFile", lambda **_: Full()), pytest.raises(OSError, match="No space left"):
        found.add(KeyedRows(["many"], made, made, zeros, zeros, zeros))
    assert len(found.look(made[:5], made[:5]).key) == 5


def test_a_position_beyond_32_bits_is_refused() -> None:
    one, zero = np.ones(1, np.uint64), np.zeros(1, np.int64)
    with pytest.raises(OverflowError):
        PlacesOfKeys().add(KeyedRows(["a"], one, one, zero, np.array([2**32]), zero))
