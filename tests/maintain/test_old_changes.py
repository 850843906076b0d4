"""Which changes of a history are old, by the files that have them."""

from __future__ import annotations

import pytest

from frazil.maintain.old_changes import FileOfChanges, old_up_to

OLD, YOUNG = True, False
Facts = tuple[int, int, bool]


def files(*facts: Facts) -> list[FileOfChanges]:
    return [FileOfChanges(first=first, last=last, rows=1, is_old=is_old) for first, last, is_old in facts]


@pytest.mark.parametrize(
    ("facts", "end"),
    [
        ((), 0),
        (((1, 4, YOUNG),), 0),
        (((1, 4, OLD), (2, 9, OLD)), 9),
        (((1, 4, OLD), (5, 8, OLD), (9, 12, YOUNG)), 8),
        (((9, 12, YOUNG), (5, 8, OLD), (1, 4, OLD)), 8),
    ],
    ids=["nothing", "nothing is old", "all", "some", "in any order"],
)
def test_old_files_go(facts: tuple[Facts, ...], end: int) -> None:
    assert old_up_to(files(*facts)) == end


def test_an_old_change_behind_a_young_one_stays() -> None:
    assert old_up_to(files((1, 4, OLD), (5, 5, YOUNG), (6, 6, OLD), (7, 9, YOUNG))) == 4


def test_a_file_that_has_changes_before_a_young_one_and_behind_it_stays_and_so_do_all_from_its_first_on() -> None:
    assert old_up_to(files((1, 2, OLD), (3, 6, OLD), (4, 4, OLD), (5, 5, YOUNG))) == 2
    assert old_up_to(files((1, 4, OLD), (3, 6, OLD), (5, 11, OLD), (10, 10, YOUNG))) == 0
    assert old_up_to(files((1, 2, OLD), (3, 6, OLD), (5, 11, OLD), (10, 10, YOUNG))) == 2


def test_a_file_without_known_changes_keeps_all() -> None:
    unknown = (0, 2**63 - 1)
    assert old_up_to(files((1, 4, OLD), (*unknown, YOUNG))) < 1
    assert old_up_to(files((1, 4, OLD), (*unknown, OLD), (5, 9, YOUNG))) < 1
