"""The lease: one maintainer at a table, and a dead one keeps nobody away for long."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from frazil.maintain import lease as leases
from frazil.maintain.lease import Lease
from tests.support.committed_table import Stock
from tests.support.jobs import job, nothing

pytestmark = pytest.mark.spark


def take(stock: Stock, holder: str, now: float = 1000.0, failpoint: Callable[[str], None] = nothing) -> Lease | None:
    return leases.take(job(stock.iceberg, run=holder, clock=lambda: now, failpoint=failpoint), stock.table, seconds=60)


def release(stock: Stock, holder: str) -> None:
    leases.release(job(stock.iceberg, run=holder), stock.table)


def test_a_maintainer_has_the_lease_until_it_releases_it_or_is_dead(stock: Stock) -> None:
    assert take(stock, "one", now=1000)
    assert take(stock, "two", now=1059) is None
    again = take(stock, "one", now=1030)
    assert again is not None
    assert again.until_ms == 1_090_000
    release(stock, "two")
    assert stock.lease.holder == "one"
    release(stock, "one")
    taken = take(stock, "two", now=1031)
    assert taken is not None
    assert (taken.holder, taken.number) == ("two", 3)
    assert take(stock, "next", now=1090) is None
    assert take(stock, "next", now=1091)
    assert stock.lease.holder == "next"


def test_of_two_that_take_it_at_once_one_gets_it(stock: Stock) -> None:
    others: list[Lease | None] = []

    def twin(step: str) -> None:
        if not others:
            others.append(take(stock, "twin"))

    assert take(stock, "slow", failpoint=twin) is None
    assert others[0] is not None
    assert stock.lease.holder == "twin"


def test_of_two_that_take_it_from_the_dead_at_once_one_gets_it(stock: Stock) -> None:
    take(stock, "dead", now=0)
    others: list[Lease | None] = []

    def twin(step: str) -> None:
        if not others:
            others.append(take(stock, "twin", now=100))

    assert take(stock, "slow", now=100, failpoint=twin) is None
    assert stock.lease.holder == "twin"


def test_a_lease_leaves_no_tag_behind(stock: Stock) -> None:
    take(stock, "one")
    assert [name for name in stock.history().refs if name.startswith(leases.TAG)] == ["frazil-maintainer-1"]
    take(stock, "one")
    assert [name for name in stock.history().refs if name.startswith(leases.TAG)] == ["frazil-maintainer-2"]
    release(stock, "one")
    assert [name for name in stock.history().refs if name.startswith(leases.TAG)] == []


def test_a_batch_that_is_being_published_is_not_failed_by_a_lease(stock: Stock) -> None:
    def leased(step: str) -> None:
        if step == "publish.filled" and stock.lease.number < 2:
            take(stock, "one")
            release(stock, "one")

    stock.land(2, failpoint=leased)
    assert stock.lease.number == 2
    stock.assert_nothing_changed()


def test_a_lease_that_cannot_be_read_is_free() -> None:
    for text in ("", "{", "[]", '{"number": "x"}', '{"marks": 3}'):
        assert Lease.of({leases.PROPERTY: text}) == Lease()


def test_a_lease_is_read_as_it_was_written(stock: Stock) -> None:
    taken = take(stock, "one")
    assert taken is not None
    assert Lease.of({leases.PROPERTY: str(taken)}) == taken == stock.lease
    assert [mark.at_ms for mark in taken.marks] == [1_000_000]
