"""A topic that is declared wrongly: the pipeline stops before anything is committed, and the operator's decision is a way on."""

from __future__ import annotations

import pytest

from frazil.declaration import Limits
from frazil.errors import TooManyRejected
from frazil.recovery.decisions import Accepted
from tests.support.jobs import Crash
from tests.support.shop import ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def test_mostly_rejected_batches_are_committed_only_after_an_operators_decision(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1, limits=Limits(first_rows=150, max_rows=150))
    schema_id = shop.register()
    shop.produce([*shop.orders(50, schema_id), *[b'{"order_id": 1}'] * 250])
    with pytest.raises(TooManyRejected, match="rejected-share"):
        shop.drain()
    assert (shop.landed(), shop.dead()) == ([], [])
    shop.accept(Accepted.REJECTED_SHARE)
    shop.produce([b'{"order_id": 1}'] * 100)  # what comes later was not decided on
    with pytest.raises(TooManyRejected, match=r'"0":300.* to .*"0":400'):
        shop.drain()
    assert (len(shop.landed()), len(shop.dead())) == (50, 250)


@pytest.mark.long
@pytest.mark.parametrize("step", ["publish.committed", "stage.done"])
def test_a_restart_midway_does_not_ask_for_the_decision_again(shop_of: ShopOf, step: str) -> None:
    shop = shop_of(partitions=2, limits=Limits(first_rows=150, max_rows=150))
    shop.register()
    shop.produce([b'{"order_id": 1}'] * 500)
    with pytest.raises(TooManyRejected):
        shop.drain()
    shop.accept(Accepted.REJECTED_SHARE)
    reached = 0

    def crash(here: str) -> None:
        nonlocal reached
        reached += here == step
        if reached == 3:
            raise Crash

    with pytest.raises(Crash):
        shop.drain(failpoint=crash)
    landed = len(shop.dead())
    assert 0 < landed < 500
    shop.produce([b'{"order_id": 1}'] * 100)  # what comes later was not decided on
    with pytest.raises(TooManyRejected):
        shop.drain()
    assert len(shop.dead()) == 500
