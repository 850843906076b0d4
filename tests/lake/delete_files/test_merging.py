"""Which delete files go, and what is written in their place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from frazil.lake.delete_files import merged_deletes
from frazil.lake.delete_files.java_manifests import DeleteFile
from frazil.lake.delete_files.merged_deletes import Merge, in_files, merge, named_most, without_data

Named = dict[str, Sequence[int]]


def file(name: str, of: str | None = None, sequence: int = 1) -> DeleteFile:
    return DeleteFile(location=name, partition=(0, "", ()), sequence=sequence, rows=1, bytes=1, of=of)


def decided(named: dict[str, Named], data: str, *, many: int = 99, writes: bool = True) -> Merge | None:
    files = [
        (file(name, next(iter(at)) if len(at) == 1 else None, int(name[1:])), {p: np.array(at[p]) for p in at})
        for name, at in named.items()
    ]
    return merge(files, set(data), many=many, writes=writes)


def locations(found: Merge | None) -> list[str]:
    assert found is not None
    return [one.location for one in found.removed]


def test_files_go_that_name_rows_of_no_data_file() -> None:
    found = decided({"f1": {"x": [1], "y": [2]}, "f2": {"a": [1], "y": [1]}, "f3": {"x": [3]}}, "ab")
    assert locations(found) == ["f1", "f3"]
    assert found is not None
    assert not found.positions


def test_a_file_is_left_that_names_rows_of_one_data_file() -> None:
    assert decided({"f1": {"a": [1], "y": [1]}}, "ab") is None


@pytest.mark.parametrize("writes", [True, False])
def test_what_is_left_is_merged_if_most_deletes_name_no_data_file(writes: bool) -> None:
    found = decided({"f4": {"a": [1, 7], "y": [1, 2, 3]}, "f5": {"x": [3]}}, "ab", writes=writes)
    if not writes:
        assert locations(found) == ["f5"]
        return
    assert locations(found) == ["f5", "f4"]
    assert found is not None
    assert {path: list(at) for path, at in found.positions.items()} == {"a": [1, 7]}
    assert found.sequence == 5


def test_many_files_are_merged_and_each_position_is_there_once() -> None:
    named: dict[str, Named] = {
        "f1": {"a": [5, 9], "b": [1]},
        "f2": {"a": [2, 5]},
        "f3": {"c": [0]},
        "f4": {"b": [2], "c": [1]},
    }
    assert decided(named, "abc", many=3) is None
    found = decided(named, "abc", many=2)
    assert locations(found) == ["f1", "f2", "f3", "f4"]
    assert found is not None
    assert {path: list(at) for path, at in found.positions.items()} == {"a": [2, 5, 9], "b": [1, 2], "c": [0, 1]}


def test_the_only_delete_file_of_a_data_file_stays() -> None:
    named: dict[str, Named] = {"f1": {"a": [5]}, "f2": {"b": [2]}, "f3": {"b": [3]}}
    assert locations(decided(named, "ab", many=2)) == ["f2", "f3"]
    assert decided({"f1": {"a": [5]}, "f2": {"b": [2]}}, "ab", many=1) is None


def test_files_of_no_data_file_need_not_be_read() -> None:
    gone, live, shared = file("f1", "x"), file("f2", "a"), file("f3")
    assert without_data([gone, live, shared], {"a"}) == (gone,)


def test_shared_files_count_for_each_data_file() -> None:
    assert named_most([file("f1", "a"), file("f2", "b"), file("f3", "b"), file("f4"), file("f5")]) == 4
    assert named_most([]) == 0


def test_data_files_with_many_deleted_rows_have_a_delete_file_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    positions = {"a": np.arange(1), "b": np.arange(50), "c": np.arange(2), "d": np.arange(20)}
    rows = dict.fromkeys(positions, 100)
    assert in_files(positions, rows) == [("b",), ("d",), ("a", "c")]
    monkeypatch.setattr(merged_deletes, "OWN_FILES", 1)
    assert in_files(positions, rows) == [("b",), ("a", "c", "d")]
    assert in_files({"b": positions["b"]}, rows) == [("b",)]
