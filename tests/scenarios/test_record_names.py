"""Subject strategies that name records: only the records that the declaration means are landed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.declaration import SubjectStrategy
from tests.support.shop import Shop, ShopOf, avro, frame
from tests.support.variants import first_short

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def record(name: str, *fields: str) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "namespace": "shop",
        "fields": [{"name": f, "type": ["null", "int"]} for f in fields],
    }


PLACED, SHIPPED, REFUNDED = record("Placed", "id"), record("Shipped", "id", "weight"), record("Refunded", "id")


def register(shop: Shop, subject: str, schema: dict[str, Any]) -> int:
    return shop.registry_admin.register(subject, json.dumps(schema))


def value(schema_id: int, schema: dict[str, Any], number: int) -> bytes:
    return frame(schema_id, avro(schema, {field["name"]: number for field in schema["fields"]}))


@pytest.mark.long
@pytest.mark.parametrize("strategy", first_short([SubjectStrategy.RECORD, SubjectStrategy.TOPIC_RECORD]))
def test_records_of_another_name_are_dead_letters(shop_of: ShopOf, name: str, strategy: SubjectStrategy) -> None:
    prefix = f"{name}-" if strategy is SubjectStrategy.TOPIC_RECORD else ""
    own = f"shop.Placed{name}"
    placed = {**PLACED, "name": f"Placed{name}"}
    other = {**REFUNDED, "name": f"Refunded{name}"}
    shop = shop_of(subject_strategy=strategy, record_name=own)
    ours = register(shop, prefix + own, placed)
    theirs = register(shop, f"{prefix}shop.Refunded{name}", other)
    # A schema of another record in a subject of our name is another record all the same.
    shop.registry_admin.set_compatibility("NONE", prefix + own)
    stranger = {**SHIPPED, "name": f"Shipped{name}"}
    misplaced = register(shop, prefix + own, stranger)
    shop.produce([value(ours, placed, 1), value(theirs, other, 2), value(misplaced, stranger, 3)])
    total = shop.drain()
    assert (total.written, total.rejected) == (1, {"foreign_schema": 2})
    (row,) = shop.landed()
    assert row["id"] == 1
    assert "weight" not in row
    assert sorted(letter["schema_id"] for letter in shop.dead()) == sorted([theirs, misplaced])
    shop.assert_each_record_once()


def test_all_records_of_a_topic_land_together_if_none_is_named(shop_of: ShopOf, name: str) -> None:
    shop = shop_of(subject_strategy=SubjectStrategy.TOPIC_RECORD)
    placed, shipped = ({**schema, "doc": name} for schema in (PLACED, SHIPPED))
    one, two = register(shop, f"{name}-shop.Placed", placed), register(shop, f"{name}-shop.Shipped", shipped)
    elsewhere = register(shop, f"{name}x-shop.Refunded", {**REFUNDED, "doc": name})
    shop.produce([value(one, placed, 1), value(two, shipped, 2), value(elsewhere, REFUNDED, 3)])
    assert shop.drain().rejected == {"foreign_schema": 1}
    assert sorted((row["id"], row["weight"]) for row in shop.landed() if row["weight"]) == [(2, 2)]
    shop.assert_each_record_once()


@pytest.mark.long
def test_records_of_any_topics_subjects_are_found_when_they_are_met(shop_of: ShopOf, name: str) -> None:
    shop = shop_of(subject_strategy=SubjectStrategy.RECORD)
    placed, shipped = ({**schema, "name": schema["name"] + name} for schema in (PLACED, SHIPPED))
    one = register(shop, f"shop.Placed{name}", placed)
    shop.produce([value(one, placed, 1), b"bad!!"])
    total = shop.drain()
    assert (total.written, total.rejected) == (1, {"wrong_magic": 1})
    two = register(shop, f"shop.Shipped{name}", shipped)
    wrong = register(shop, f"shop.Other{name}", {**REFUNDED, "name": f"Refunded{name}"})
    shop.produce([value(two, shipped, 2), value(one, placed, 3), value(wrong, REFUNDED, 4)])
    assert shop.drain().rejected == {"foreign_schema": 1}
    assert sorted((row["id"], row["weight"] or 0) for row in shop.landed()) == [(1, 0), (2, 2), (3, 0)]
    shop.assert_each_record_once()
