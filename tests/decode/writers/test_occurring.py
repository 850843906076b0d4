"""Few of many writers are decoded: the newest, and those that were met."""

from __future__ import annotations

from frazil.decode.writers.writer_schemas import FEW, NEWEST, Occurring

MANY = list(range(1, 31))


def test_the_newest_and_those_that_were_met_are_decoded() -> None:
    occurring = Occurring()
    assert occurring.of(MANY) == {29, 30}
    occurring.see([3, 99])
    assert occurring.of(MANY) == {3, 29, 30}
    assert occurring.of([]) == set()
    assert NEWEST == 2


def test_a_few_are_not_forgotten_and_many_are() -> None:
    occurring = Occurring()
    occurring.see(MANY[:FEW])
    assert not occurring.forget()
    occurring.see([20])
    assert occurring.forget()
    assert occurring.of(MANY) == {29, 30}


def test_what_an_earlier_run_decoded_is_decoded_from_the_start_if_it_is_little() -> None:
    occurring = Occurring()
    occurring.recall(MANY, MANY)
    assert occurring.of(MANY) == {29, 30}
    occurring.recall([4, 999], [*MANY, 7 << 32 | 4])  # a type of the same schema
    assert occurring.of([7 << 32 | 4, *MANY]) == {4, 7 << 32 | 4, 29, 30}
