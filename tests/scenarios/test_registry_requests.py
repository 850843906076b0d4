"""The registry is asked about what is new, once for a batch, and about nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.decode.writers.seen_frames import MOST
from tests.support.registry_server import RegistryServer, says
from tests.support.shop import ORDER, ShopOf, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def version(number: int) -> dict[str, Any]:
    """A version of ORDER with one more optional column."""
    field = {"name": f"note_{number}", "type": ["null", "string"], "default": None}
    return {**ORDER, "fields": [*ORDER["fields"], field]}


def test_a_batch_that_brings_nothing_new_lands_while_the_registry_is_down(
    shop_of: ShopOf, registry: RegistryServer
) -> None:
    shop = shop_of(partitions=1)
    schema_id = registry.store.register(f"{shop.topic}-value", json.dumps(ORDER))
    ingestion = shop.ingestion(registry=shop.registry(registry.url))
    shop.produce(shop.orders(5, schema_id))
    assert ingestion.poll()
    registry.always, asked = says(503), len(registry.requests)
    shop.produce([*shop.orders(5, schema_id, first=5), frame(schema_id, b"\xff")])  # one of them is not decodable
    assert ingestion.poll()
    ingestion.forget()  # as after an outage of Kafka or the catalog
    shop.produce(shop.orders(5, schema_id, first=10))
    assert ingestion.poll()
    assert len(registry.requests) == asked
    assert ingestion.total.rejected == {"undecodable": 1}
    shop.assert_each_record_once()


@pytest.mark.long
def test_a_topic_of_unframed_data_lands_what_is_framed_and_asks_for_no_id_of_a_flood(
    shop_of: ShopOf, registry: RegistryServer
) -> None:
    shop = shop_of(partitions=1, max_rejected_percent=100)
    schema_id = registry.store.register(f"{shop.topic}-value", json.dumps(ORDER))
    ingestion = shop.ingestion(registry=shop.registry(registry.url))
    shop.produce(shop.orders(2, schema_id))
    assert ingestion.poll()
    asked, garbage = len(registry.requests), [frame(1_000_000 + n, b"body") for n in range(3 * MOST)]
    late = registry.store.register(f"{shop.topic}-value", json.dumps(version(1)))
    shop.produce([*garbage, *shop.orders(3, late, first=2, schema=version(1)), *shop.orders(3, schema_id, first=5)])
    ingestion.drain()
    assert ingestion.total.rejected == {"unknown_schema": 3 * MOST}
    assert ingestion.total.written == 8
    assert len(registry.requests) - asked < 10
    assert len(shop.seen("schema_looked_up")) == 1  # for the version that was registered meanwhile
    shop.produce(garbage)
    asked = len(registry.requests)
    ingestion.drain()
    assert len(registry.requests) - asked == 2  # are there new versions?
    assert len(shop.seen("schema_looked_up")) == 1


@pytest.mark.long
def test_versions_have_a_decoder_once_a_record_of_theirs_is_met(shop_of: ShopOf, registry: RegistryServer) -> None:
    shop = shop_of(partitions=1)
    ids = [registry.store.register(f"{shop.topic}-value", json.dumps(version(number))) for number in range(12)]
    ingestion = shop.ingestion(registry=shop.registry(registry.url))
    shop.produce([value for number in (0, 5, 11) for value in shop.orders(2, ids[number], schema=version(number))])
    ingestion.drain()
    assert ingestion.total.written == 6
    assert len(shop.seen("schema_looked_up")) == 1
    assert len(registry.requests) == 1 + 2 * 12  # the versions, and each one's schema
    assert {f"note_{number}" for number in range(12)} <= shop.landed()[0].keys()  # the table follows all versions
    shop.produce(shop.orders(2, ids[5], first=6, schema=version(5)))
    shop.ingestion(registry=shop.registry(registry.url)).drain()
    assert len(shop.seen("schema_looked_up")) == 1  # a run begins with what the last batch was decoded with
    shop.assert_each_record_once()
