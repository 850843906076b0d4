"""The result of a search, by data file."""

from __future__ import annotations

import pyarrow as pa

from frazil.upsert.resolver_protocol import FILE, HASH, IS_DELETE, POSITION, grouped

MOVED = "_frazil_moved"


def search(*rows: tuple[str, int, bool, int]) -> pa.Table:
    columns = [*(zip(*rows, strict=True) if rows else [()] * 4), [False] * len(rows)]
    types = (pa.string(), pa.int64(), pa.bool_(), pa.int64(), pa.bool_())
    arrays = [pa.array(list(c), t) for c, t in zip(columns, types, strict=True)]
    return pa.table(arrays, names=[FILE, POSITION, IS_DELETE, HASH, MOVED])


def marked(found: pa.Table, **marks: list[bool]) -> pa.Table:
    """Add the number of each row's key, and marks: False where none is given."""
    for name in ("late", "kept", "void", "ties"):
        found = found.append_column(f"_frazil_{name}", pa.array(marks.get(name, [False] * len(found))))
    numbers = {key: n for n, key in enumerate(dict.fromkeys(found[HASH].to_pylist()))}
    return found.append_column("_frazil_number", pa.array([numbers[k] for k in found[HASH].to_pylist()], pa.int32()))


def test_positions_are_sorted_in_each_file() -> None:
    found = grouped(search(("b", 7, False, 1), ("a", 9, False, 2), ("b", 3, False, 3), ("a", 1, False, 4)))
    assert {path: list(at) for path, at in found.at.items()} == {"a": [1, 9], "b": [3, 7]}


def test_a_row_that_came_twice_counts_once() -> None:
    found = grouped(search(("a", 1, True, 5), ("a", 1, True, 5), ("a", 2, False, 6)))
    assert (found.rows, found.updated, found.deleted, found.hash) == (2, 1, 1, 11)


def test_hashes_are_added_modulo_two_to_the_64() -> None:
    found = grouped(search(("a", 1, True, -1), ("a", 2, True, -2), ("a", 3, False, 77)))
    assert found.hash == 74


def test_a_key_that_is_there_twice_is_one_key() -> None:
    found = grouped(search(("a", 1, False, 5), ("b", 1, False, 5)))
    assert (found.rows, found.updated) == (2, 1)


def test_nothing_found_is_nothing() -> None:
    found = grouped(search())
    assert (found.rows, found.at, found.hash) == (0, {}, 0)


def test_a_late_record_leaves_its_row_alone() -> None:
    """Also if only one of several rows of its key is a later one."""
    found = search(("a", 1, False, 5), ("a", 2, False, 6), ("b", 1, False, 6), ("b", 2, True, 7))
    found = marked(
        found, late=[False, True, False, False], kept=[False, False, False, True], ties=[False, True, False, False]
    )
    result = grouped(found)
    assert {path: list(at) for path, at in result.at.items()} == {"a": [1], "b": [2]}
    assert (result.updated, result.deleted, result.hash) == (1, 1, 12)
    assert (result.late, result.kept, result.ties) == ({1}, {2}, 1)
    only_late = grouped(found.slice(1, 1))
    assert (only_late.rows, only_late.late) == (0, {1})


def test_a_write_without_effect_leaves_its_row_alone() -> None:
    """It lacks values that a row marked as deleted has, and this row stays."""
    found = search(("a", 1, False, 5), ("a", 2, False, 6), ("b", 1, True, 7))
    found = marked(found, kept=[True, False, False], void=[False, True, False])
    result = grouped(found)
    assert {path: list(at) for path, at in result.at.items()} == {"a": [1], "b": [1]}
    assert (result.updated, result.deleted, result.hash) == (1, 1, 12)
    assert (result.late, result.kept) == (frozenset(), {0})
