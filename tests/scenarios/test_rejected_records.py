"""Error mode `suspend` stops at a rejected record; an operator accepts the records that the stop names, once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from frazil.clients.secrets import Secrets
from frazil.declaration import Append, Changelog, ErrorMode, Upsert
from frazil.errors import InvalidInput, RejectedRecords
from frazil.lake.ledger.stop import Stop
from frazil.lake.read.stored_tables import Lake
from frazil.recovery.decisions import Acceptance, Accepted
from frazil.status.pipeline_status import PipelineStatus, status_of
from tests.support.jobs import Crash, crash_at
from tests.support.shop import ORDER, Shop, ShopOf, avro, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
TEXT = {**ORDER, "fields": [ORDER["fields"][0], ORDER["fields"][1], {"name": "amount", "type": "string"}]}


def accepted(shop: Shop, **overrides: Any) -> Acceptance:
    return shop.accept(Accepted.REJECTED_RECORDS, **overrides)


def stopped(shop: Shop) -> RejectedRecords:
    error = shop.ended().error
    assert isinstance(error, RejectedRecords), error
    return error


def shown(shop: Shop) -> PipelineStatus:
    lake = Lake(shop.lake, Secrets({}).read)
    return status_of(shop.pipeline, lake.table(shop.pipeline.table.identifier))


def dead(shop: Shop) -> list[tuple[int, str]]:
    return sorted((row["offset"], row["reason"]) for row in shop.dead())


@pytest.mark.parametrize(
    "write",
    [Upsert(), pytest.param(Changelog(), marks=pytest.mark.long), pytest.param(Append(), marks=pytest.mark.long)],
)
def test_named_records_become_dead_letters_once_and_later_ones_stop_again(shop_of: ShopOf, write: Any) -> None:
    shop = shop_of(write=write, on_error=ErrorMode.SUSPEND, key_format="text", partitions=1)
    schema_id = shop.register()
    shop.produce([*shop.orders(2, schema_id), frame(schema_id, b"\x02\x09")])  # order 1, then a length of -5
    error = stopped(shop)
    assert "record partition 0 offset 2: undecodable, field user: a length of -5 at byte 6" in str(error)
    assert (shop.landed(), shop.dead()) == ([], [])
    seen = shown(shop)
    assert (seen.why, seen.record) == (str(error), (shop.topic, 0, 2))
    assert seen.commands == (f"frazil accept {shop.pipeline.name} rejected-records --reason …",)

    other = shop.register(TEXT)  # comes after the stop, so the decision does not count for it
    shop.produce([frame(other, avro(TEXT, {"order_id": 7, "user": "u", "amount": "many"}))], key=b"3")
    accepted(shop)
    assert shown(shop).commands == ()
    error = stopped(shop)
    assert (
        f"version 2 of subject {shop.topic}-value (schema id {other}), field amount: double cannot become string"
        in str(error)
    )
    assert error.facts["record"] == (shop.topic, 0, 3)
    assert dead(shop) == [(2, "undecodable")]
    assert len(shop.landed()) == 2
    accepted(shop)
    shop.produce(shop.orders(1, schema_id, first=4), key=b"4")
    assert shop.ended().error is None
    assert dead(shop) == [(2, "undecodable"), (3, "incompatible_schema")]
    assert shown(shop).commands == ()
    if isinstance(write, Upsert):
        assert shown(shop).stale_keys == 2
    shop.assert_proven(deep=True)
    with pytest.raises(InvalidInput, match="nothing to accept"):
        accepted(shop)


@pytest.mark.long
@pytest.mark.parametrize("step", ["accept.decided", "publish.committed"])
def test_a_decision_that_was_killed_is_made_again_or_counts(shop_of: ShopOf, step: str) -> None:
    shop = shop_of(write=Upsert(), partitions=2, key_format="text")
    schema_id = shop.register()
    shop.produce([*shop.orders(40, schema_id), *[b"bad!!!"] * 200])  # more than half of the batch
    stopped(shop)
    with pytest.raises(Crash):
        accepted(shop, failpoint=crash_at(step))
    if step == "accept.decided":
        assert stopped(shop).facts["record"]
        accepted(shop)
    shop.die("publish.committed")
    assert shop.ended().error is None
    assert (len(shop.landed()), len(shop.dead())) == (40, 200)
    shop.assert_proven(deep=True)


@pytest.mark.long
def test_a_stop_is_over_when_a_changed_declaration_lands_the_records(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="text", partitions=1)
    shop.produce([*shop.orders(2, shop.register()), b"bad!!!"])
    stopped(shop)
    properties = shop.table.properties()
    found = Stop.of(properties, shop.pipeline.name)
    assert found is not None
    assert (found.records, found.until) == ({0: [[2, 3]]}, {0: 3})
    kept = replace(shop.pipeline, on_error=ErrorMode.DEAD_LETTER)
    assert shop.ended(kept).error is None
    assert shown(shop).commands == ()
