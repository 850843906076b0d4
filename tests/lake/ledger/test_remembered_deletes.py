"""The files of deleted keys that a commit names: how many there are, which are merged, and which are forgotten."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.remembered_deletes import EACH, ROWS_A_FILE, SIZES, KeyColumn, KeyFile, RememberedDeletes


def deletes(*rows: int) -> RememberedDeletes:
    """Files with so many keys, each newer than the one before."""
    return RememberedDeletes(tuple(KeyFile(f"s3://b/t/{n}.parquet", count, 9, n) for n, count in enumerate(rows)))


@pytest.mark.parametrize("known", [RememberedDeletes(), deletes(7), deletes(*range(200))], ids=["none", "one", "many"])
def test_what_is_written_is_read_again(known: RememberedDeletes) -> None:
    assert RememberedDeletes.parse(str(known)) == known
    stored = ledger.stored({ledger.FORMAT: "1", ledger.REMEMBERED_DELETES: str(known)})
    assert Entry.of(1, stored).remembered_deletes == known


def test_a_location_is_kept_once() -> None:
    assert str(deletes(7, 8)).count("s3://b/t/") == 1
    same = RememberedDeletes((KeyFile("s3://b/1", 1, 1, 1), KeyFile("s3://b/11", 1, 1, 1)))
    assert RememberedDeletes.parse(str(same)) == same


A, B = KeyColumn(1, "a"), KeyColumn(2, "b")


@pytest.mark.parametrize(
    ("known", "now", "order"),
    [
        ((A, B), {"b": 2, "a": 1}, ("a", "b")),
        ((A, B), {"x": 1, "b": 2}, ("x", "b")),
        ((A, B), {"b": 1, "a": 2}, ("b", "a")),  # both were renamed, to each other's names
        ((A, B), {"a": 9, "b": 2}, ("a", "b")),  # dropped, and added again
        ((A, B), {"a": 9, "b": 8}, ("a", "b")),
        ((A, B), {"x": 9, "b": 2}, ("x", "b")),  # also renamed meanwhile: the only one that is left
        ((A, B), {"b": 9, "c": 2}, ("b", "c")),
        ((A, B), {"x": 9, "y": 8}, None),
        ((A, B), {"a": 1}, None),
    ],
)
def test_the_columns_of_the_files_stay_those_of_the_key(
    known: tuple[KeyColumn, ...], now: dict[str, int], order: tuple[str, ...] | None
) -> None:
    """A file has its columns by number, in the order of the field ids when the first one was written."""
    stored = RememberedDeletes.parse(str(replace(deletes(7), columns=known)))
    assert stored.in_order(now) == order


def test_a_table_that_remembers_none_says_nothing() -> None:
    assert Entry.of(1, {}).remembered_deletes == RememberedDeletes()


def test_a_file_is_forgotten_with_its_newest_delete() -> None:
    known = deletes(1, 1, 1)
    assert known.since(0).files == known.files[1:]
    assert known.since(2).files == ()


def test_what_is_forgotten_stays_so_if_time_goes_back() -> None:
    """A longer time to remember, or a slower clock; the file may stay because of its later deletes."""
    later = RememberedDeletes.parse(str(deletes(1, 1, 1).since(1)))
    assert later.since(-5) == later
    assert later.forgotten == 1


@pytest.mark.parametrize(
    ("rows", "merged"),
    [
        ([], []),
        ([5] * (EACH - 2), []),
        ([5] * (EACH - 1), [5] * (EACH - 1)),
        ([SIZES[0] + 1, *[5] * (EACH - 1)], [5] * (EACH - 1)),  # a larger one stays
        ([*[SIZES[0] + 1] * (2 * EACH - 2), 5], [*[SIZES[0] + 1] * (2 * EACH - 2), 5]),
        ([SIZES[-1] + 1] * 99, []),
    ],
)
def test_files_of_one_size_are_merged_when_there_are_many(rows: list[int], merged: list[int]) -> None:
    assert [file.rows for file in deletes(*rows).merged_next.files] == merged


def test_a_merge_replaces_the_newest_files() -> None:
    known, new = deletes(SIZES[0] + 1, *[5] * (EACH - 1)), KeyFile("s3://b/t/new", 40, 9, 99)
    after = known.after(known.merged_next, [new])
    assert after.files == (known.files[0], new)


@pytest.mark.parametrize("rows", [(1, 10, 3_000), (3_000, 20_000), (30_000, 100_000)])
def test_neither_files_nor_the_keys_that_are_written_again_grow_with_the_batches(rows: tuple[int, ...]) -> None:
    """Each key is written about once for each size, and there are some files of each, also of hundreds of millions of keys."""
    dice = random.Random(len(rows))
    known, landed, written, most = RememberedDeletes(), 0, 0, 0
    for at in range(3_000):
        deleted = dice.choice(rows)
        merged = known.merged_next
        total = deleted + sum(file.rows for file in merged.files)
        pieces = -(-total // ROWS_A_FILE)
        made = [KeyFile(f"{at}-{piece}", (total + piece) // pieces, total, at) for piece in range(pieces)]
        known = known.after(merged, made)
        landed, written, most = landed + deleted, written + total, max(most, len(known.files))
        assert [file.newest for file in known.files] == sorted(file.newest for file in known.files)
    assert sum(file.rows for file in known.files) == landed
    assert most <= EACH * sum(range(1, len(SIZES) + 1)) + landed / SIZES[-1]
    assert written <= landed * (len(SIZES) + 1)
