"""A pipeline that moves to another group: the jobs of both groups may run it for a while, and each record lands once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from frazil.declaration import Spark
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
OLD, NEW = "ingest-3-aaaaaaaa-1", "ingest-payments-1-bbbbbbbb-1"


@pytest.mark.parametrize("step", ["stage.written", pytest.param("publish.filled", marks=pytest.mark.long)])
def test_a_pipeline_that_moves_to_another_group_loses_and_doubles_nothing(shop: Shop, step: str) -> None:
    schema = shop.register()
    shop.produce(shop.orders(20, schema))
    moved = replace(shop.pipeline, engine=Spark(group="payments"))
    others, steps = list[int](), list[str]()

    def new_job(reached: str) -> None:
        steps.append(reached)
        if reached == step and "plan.done" in steps and not others:
            others.append(shop.drain(moved, run=NEW).written)

    assert shop.drain(run=OLD, failpoint=new_job).fenced, "the new group's job has committed in between"
    assert others == [20]
    shop.produce(shop.orders(5, schema, first=20))
    assert shop.drain(moved, run=NEW).written == 5, "at the offsets that the old job would have read"
    assert shop.drain(run=OLD).written == 0, "a late run of the old job finds nothing"
    shop.assert_each_record_once()
