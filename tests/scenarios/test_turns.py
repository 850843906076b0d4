"""A drain with more pipelines than slots: the one that has waited longest lands first."""

from __future__ import annotations

import pytest

from frazil.ingest import runner
from frazil.ingest.runner import Turn, turns
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


@pytest.mark.long
def test_a_drain_of_one_slot_begins_with_the_longest_wait(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "PARALLEL", 1)
    late = Shop(shop.world, shop.spark, shop.lake, f"{shop.topic}_late", partitions=1)
    for each in (late, shop):
        schema = each.register()
        each.produce(each.orders(2, schema))
        each.drain()
        each.produce(each.orders(2, schema, first=2))
    shop.events.clear()
    pipelines = [shop.pipeline, late.pipeline]
    shop.drained(*pipelines)
    started = [event["pipeline"] for event in shop.seen("pipeline_started")]
    assert started == [late.pipeline.name, shop.pipeline.name], "declared last, and landed before the other"
    found = turns(pipelines, shop.job())
    assert all(turn.is_idle and turn.committed_at_ms > 0 for turn in found.values())
    late.delete()
    assert turns([late.pipeline], shop.job())[late.pipeline.name] == Turn(is_idle=False, committed_at_ms=0)
