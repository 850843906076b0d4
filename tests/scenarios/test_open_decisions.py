"""A driver that begins while another one's decision is open: nobody commits over it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from frazil.declaration import Limits
from frazil.ingest.setup import table_setup
from frazil.lake.commit.dead_letters.decide import finish_open
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java
from frazil.recovery.decisions import Accepted
from tests.support.jobs import job
from tests.support.shop import Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.long]


def test_a_decision_made_while_another_driver_begins_is_finished_before_the_next(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other driver has looked for open decisions and not yet read the ledger when this one decides, and pauses."""
    shop = shop_of(limits=Limits(first_rows=10, max_rows=10), partitions=1)
    schema_id = shop.register()
    shop.produce(shop.orders(10, schema_id))
    shop.drain()
    for first in (10, 20):
        shop.produce([*shop.orders(9, schema_id, first=first), b"bad!!"])
    decided, go, is_first = threading.Event(), threading.Event(), threading.Event()

    def pause(step: str) -> None:
        if step == "decide.decided" and not decided.is_set():
            decided.set()
            assert go.wait(60)

    decider = threading.Thread(target=lambda: shop.drain(failpoint=pause))

    def then_the_decider(*arguments: Any, **options: Any) -> int:
        found = finish_open(*arguments, **options)
        if not is_first.is_set():
            is_first.set()
            decider.start()
            assert decided.wait(60)
        return found

    monkeypatch.setattr(table_setup, "finish_open", then_the_decider)
    try:
        shop.drain()
    finally:
        go.set()
        decider.join(60)
    shop.drain()
    shop.assert_each_record_once()


@pytest.mark.parametrize("bad", [(), (b"bad!!",)], ids=["no dead letters", "dead letters"])
def test_a_driver_finishes_what_an_operator_left_open_while_it_staged(shop_of: ShopOf, bad: tuple[bytes, ...]) -> None:
    """The operator's command put rolled back dead letters back, and died before it did more than decide."""
    shop = shop_of(limits=Limits(first_rows=10, max_rows=10), partitions=1)
    schema_id = shop.register()
    shop.produce([*shop.orders(9, schema_id), b"bad!!"])
    shop.drain()
    shop.produce([*shop.orders(9, schema_id, first=10), b"worse"])
    shop.drain()
    shop.produce([*shop.orders(10 - len(bad), schema_id, first=20), *bad])
    operated: list[str] = []

    def operate(step: str) -> None:
        if step != "stage.done" or operated:
            return
        operated.append(step)
        side = Iceberg(shop.spark).load(shop.pipeline.table.dead_letters)
        side.manageSnapshots().rollbackTo(side.currentSnapshot().parentId()).commit()
        with pytest.raises(_Ended):
            shop.accept(Accepted.ROLLED_BACK_REPLAY, failpoint=_end)

    total = shop.drain(failpoint=operate)
    assert operated
    assert (total.read, total.fenced) == (10, False)
    shop.assert_each_record_once()


class _Interrupted(Iceberg):
    """A catalog where something happens just after the `at`-th load of `table` (counted from 1) was answered."""

    def __init__(self, shop: Shop, table: str, at: int, meanwhile: Callable[[], object]) -> None:
        super().__init__(shop.spark)
        self._table, self._left, self._meanwhile = table, at, meanwhile
        self.happened = False

    def load(self, table: str) -> Java:
        found = super().load(table)
        self._left -= table == self._table
        if self._left == 0 and not self.happened:
            self.happened = True
            self._meanwhile()
        return found


class _Ended(Exception):
    """The driver's process ended here."""


def _end(step: str) -> None:
    if step == "decide.decided":
        raise _Ended


def test_two_that_finish_one_decision_append_its_rows_once(shop_of: ShopOf) -> None:
    """Another driver finishes it between any two looks that a finisher takes at the side table."""
    shop = shop_of(limits=Limits(first_rows=10, max_rows=10), partitions=1)
    table, schema_id = shop.pipeline.table, shop.register()

    def finish(iceberg: Iceberg, run: str) -> int:
        return finish_open(job(iceberg, run=run), table.identifier, table.dead_letters, shop.pipeline.name)

    for look in itertools.count(1):
        shop.produce([*shop.orders(9, schema_id, first=10 * look), b"bad!!"])
        with pytest.raises(_Ended):
            shop.drain(failpoint=_end)
        appended: list[int] = []
        interrupted = _Interrupted(
            shop,
            table.dead_letters,
            look,
            lambda appended=appended: appended.append(finish(Iceberg(shop.spark), "other")),  # type: ignore[misc]
        )
        appended.append(finish(interrupted, "this"))
        assert sum(appended) == 1, f"look {look}: {appended}"
        if not interrupted.happened:
            break
    assert look > 2
    shop.drain()
    shop.assert_each_record_once()
