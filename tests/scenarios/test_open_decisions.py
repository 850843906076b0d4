"""A driver that begins while another one's decision is open: nobody commits over it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from frazil.declaration import Limits
from frazil.ingest import run
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def test_a_decision_made_while_another_driver_begins_is_finished_before_the_next(
    shop_of: Callable[..., Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other driver has looked for open decisions and not yet read the ledger when this one decides, and pauses."""
    shop = shop_of(limits=Limits(first_rows=10, max_rows=10), partitions=1)
    schema_id = shop.register()
    shop.produce(shop.orders(10, schema_id))
    shop.drain()
    for first in (10, 20):
        shop.produce([*shop.orders(9, schema_id, first=first), b"bad!!"])
    decided, go, is_first, finish_open = threading.Event(), threading.Event(), threading.Event(), run.finish_open

    def pause(step: str) -> None:
        if step == "decide.decided" and not decided.is_set():
            decided.set()
            assert go.wait(60)

    decider = threading.Thread(target=lambda: shop.drain(reach=pause))

    def then_the_decider(*arguments: Any, **options: Any) -> int:
        found = finish_open(*arguments, **options)
        if not is_first.is_set():
            is_first.set()
            decider.start()
            assert decided.wait(60)
        return found

    monkeypatch.setattr(run, "finish_open", then_the_decider)
    try:
        shop.drain()
    finally:
        go.set()
        decider.join(60)
    shop.drain()
    shop.assert_each_record_once()
