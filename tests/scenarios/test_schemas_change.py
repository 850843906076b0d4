"""A schema change is committed before the first row that needs it, and never narrows a column."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from frazil.declaration import Limits, Upsert
from frazil.declaration.options import SchemaEvolution
from frazil.ingest.proof_landing import replay
from tests.scenarios.test_preview import previewed
from tests.support.jobs import once
from tests.support.keyed_topic import record
from tests.support.shop import ORDER, Shop, ShopOf, avro, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def version(**changed: Any) -> dict[str, Any]:
    """ORDER with fields of other types, or new ones."""
    fields = {f["name"]: dict(f) for f in ORDER["fields"]}
    for name, kind in changed.items():
        if kind is None:
            del fields[name]
        else:
            fields[name] = {**fields.get(name, {}), "name": name, **kind}
    return {**ORDER, "fields": list(fields.values())}


ADDED = version(note={"type": ["null", "string"], "default": None})
NARROW = version(order_id={"type": "int"})
AS_TEXT = version(order_id={"type": "string"})


def kinds(shop: Shop) -> dict[str, str]:
    schema = shop.stored.schema()
    return {f.name: str(f.field_type) for f in schema.fields if not f.name.startswith("_")}


def test_a_new_field_is_a_new_column_in_the_same_run(shop: Shop) -> None:
    shop.produce(shop.orders(5, shop.register()))
    shop.drain()
    second = shop.register(ADDED)
    shop.produce(shop.orders(5, second, first=5, schema=ADDED))
    shop.drain()
    assert kinds(shop) == {"order_id": "long", "user": "string", "amount": "double", "note": "string"}
    shop.assert_each_record_once()


@pytest.mark.long
def test_a_version_registered_between_two_batches_is_known_before_the_second(shop_of: ShopOf) -> None:
    shop = shop_of(limits=Limits(first_rows=5, max_rows=5), partitions=1)
    shop.produce(shop.orders(5, shop.register()))
    shop.drain()
    shop.produce(shop.orders(5, shop.register(ADDED), first=5, schema=ADDED))
    shop.drain()
    assert not shop.seen("batch_retried")
    assert shop.drain().read == 0
    shop.assert_each_record_once()


@pytest.mark.long
def test_a_version_met_before_it_was_known_makes_the_batch_again_and_rejects_nothing(shop: Shop) -> None:
    first = shop.register()
    shop.produce(shop.orders(5, first))
    late: dict[str, int] = {}

    def register_late(step: str) -> None:
        if step == "stage.started" and not late:
            late["id"] = shop.register(ADDED)
            shop.produce(shop.orders(5, late["id"], first=5, schema=ADDED))

    # The second version's records are in the range only if it is planned after they were produced: so plan twice.
    ingestion = shop.ingestion(failpoint=register_late)
    ingestion.drain()
    total = ingestion.drain()
    assert total.rejected == {}
    shop.assert_each_record_once()


def test_a_wider_type_widens_the_column_and_old_records_still_land(shop: Shop) -> None:
    narrow = shop.register(NARROW)
    shop.produce(shop.orders(3, narrow, schema=NARROW))
    shop.drain()
    assert kinds(shop)["order_id"] == "int"
    wide = shop.register(ORDER)
    shop.produce([*shop.orders(3, wide, first=3), *shop.orders(3, narrow, first=6, schema=NARROW)])
    shop.drain()
    assert kinds(shop)["order_id"] == "long"
    assert sorted(r["order_id"] for r in shop.landed()) == list(range(9))


def test_times_of_another_unit_are_rejected_not_mixed(shop: Shop) -> None:
    """A database column of more digits: Debezium and Avro then write another unit, in a wider type."""
    millis, micros, named, renamed = (
        version(at=kind)
        for kind in (
            {"type": {"type": "int", "logicalType": "time-millis"}, "default": 0},
            {"type": {"type": "long", "logicalType": "time-micros"}, "default": 0},
            {"type": {"type": "int", "connect.name": "io.debezium.time.Time"}, "default": 0},
            {"type": {"type": "long", "connect.name": "io.debezium.time.NanoTime"}, "default": 0},
        )
    )
    shop.produce(shop.orders(3, shop.register(millis), schema=millis))
    shop.drain()
    shop.produce(shop.orders(2, shop.register(micros), first=3, schema=micros))
    shop.produce(shop.orders(1, shop.register(named), first=5, schema=named))
    shop.produce(shop.orders(1, shop.register(renamed), first=6, schema=renamed))
    assert shop.drain().rejected == {"incompatible_schema": 3}
    assert kinds(shop)["at"] == "int"
    assert {event["message"].split(". ")[0] for event in shop.seen("schema_incompatible")} == {
        "at: int of milliseconds cannot become long of microseconds",
        "at: int of milliseconds cannot become long of nanoseconds",
    }
    shop.assert_each_record_once()


@pytest.mark.long
def test_records_of_a_version_that_cannot_land_are_kept_and_later_ones_still_flow(shop: Shop) -> None:
    good = shop.register()
    bad = shop.register(AS_TEXT)
    good_again = shop.register(ADDED)
    value = frame(bad, avro(AS_TEXT, {"order_id": "x", "user": "u", "amount": None}))
    shop.produce([*shop.orders(3, good), value, *shop.orders(3, good_again, first=3, schema=ADDED)])
    total = shop.drain()
    assert total.rejected == {"incompatible_schema": 1}
    assert total.written == 6
    (event, *_) = shop.seen("schema_incompatible")
    assert "order_id" in event["message"]
    shop.assert_each_record_once()


def test_a_renamed_field_keeps_its_column(shop: Shop) -> None:
    shop.produce(shop.orders(3, shop.register()))
    shop.drain()
    before = shop.stored.schema().find_field("user").field_id
    renamed = {
        **ORDER,
        "fields": [
            {**f, "name": "customer", "aliases": ["user"]} if f["name"] == "user" else f for f in ORDER["fields"]
        ],
    }
    schema_id = shop.register(renamed)
    shop.produce([frame(schema_id, avro(renamed, {"order_id": 9, "customer": "new", "amount": None}))])
    shop.drain()
    after = shop.stored.schema()
    assert after.find_field("customer").field_id == before
    assert sorted(r["customer"] for r in shop.landed()) == ["new", "u0", "u1", "u2"]


def test_a_members_values_stay_in_its_column_whatever_other_members_a_version_has(shop: Shop) -> None:
    """The registry forgets the first version in between, so only the table says which member has which column."""

    card, iban, gift = (record(name, number="string") for name in ("pay.Card", "pay.Iban", "gift.Card"))

    def send(value: dict[str, Any], how: list[Any], many: list[Any], alone: list[Any]) -> None:
        schema = record("Pay", order_id="long", how=how, many={"type": "array", "items": many}, alone=alone)
        defined: set[str] = set()
        schema = json.loads(json.dumps(schema), object_hook=lambda tree: defined_once(tree, defined))
        shop.produce([frame(shop.register(schema), avro(schema, value))])

    def defined_once(tree: dict[str, Any], defined: set[str]) -> Any:
        is_second = tree.get("type") == "record" and tree["name"] in defined
        defined.add(tree.get("name", "")) if tree.get("type") == "record" else None
        return tree["name"] if is_second else tree

    def of(name: str, number: str) -> tuple[str, dict[str, str]]:
        return name, {"number": number}

    one = {
        "order_id": 1,
        "how": of("pay.Card", "a"),
        "many": [of("pay.Card", "b"), of("gift.Card", "c")],
        "alone": None,
    }
    send(one, ["null", card, iban], ["null", card, gift], ["null", card])
    shop.drain()
    shop.registry_admin.delete_subject(f"{shop.topic}-value")
    shop.registry_admin.delete_subject(f"{shop.topic}-value", permanent=True)
    two = {
        "order_id": 2,
        "how": of("pay.Card", "d"),
        "many": [None, of("gift.Card", "e")],
        "alone": of("pay.Card", "f"),
    }
    send(two, ["null", card], ["null", gift], ["null", card])
    three = {"order_id": 3, "how": of("pay.Iban", "g"), "many": [of("pay.Card", "h")], "alone": of("pay.Card", "i")}
    send(three, [iban, "int", card], ["null", gift, card], [card])
    send({**three, "order_id": 4}, ["null", iban], ["null", card], ["null", card, iban])
    total = shop.drain()
    assert total.rejected == {"incompatible_schema": 1}
    (event, *_) = shop.seen("schema_incompatible")
    assert "alone: the column holds one type, and the field may be pay.Card and pay.Iban now" in event["message"]
    rows = {row["order_id"]: row for row in shop.landed()}
    a, c, d, e, f, g, h, i = ({"number": letter} for letter in "acdefghi")
    b = {"number": "b"}
    assert [rows[n]["how"] for n in (1, 2, 3)] == [
        {"member_card": a, "member_iban": None, "member_int": None},
        {"member_card": d, "member_iban": None, "member_int": None},
        {"member_card": None, "member_iban": g, "member_int": None},
    ]
    assert [rows[n]["many"] for n in (1, 2, 3)] == [
        [{"member_card": b, "member_gift_card": None}, {"member_card": None, "member_gift_card": c}],
        [None, {"member_card": None, "member_gift_card": e}],
        [{"member_card": h, "member_gift_card": None}],
    ]
    assert [rows[n]["alone"] for n in (1, 2, 3)] == [None, f, i]
    shop.assert_each_record_once()


@pytest.mark.long
@pytest.mark.parametrize(
    ("evolution", "schema", "landed", "rejected"),
    [(SchemaEvolution.FREEZE, ADDED, 3, {"incompatible_schema": 2}), (SchemaEvolution.ADD_COLUMNS, ADDED, 5, {})],
)
def test_a_table_evolves_only_as_far_as_declared(
    shop_of: ShopOf, evolution: SchemaEvolution, schema: dict[str, Any], landed: int, rejected: dict[str, int]
) -> None:
    shop = shop_of(table={"schema_evolution": evolution})
    shop.produce(shop.orders(3, shop.register()))
    shop.drain()
    shop.produce(shop.orders(2, shop.register(schema), first=3, schema=schema))
    assert shop.drain().rejected == rejected
    assert len(shop.landed()) == landed
    shop.assert_each_record_once()


def test_two_drivers_that_evolve_at_once_agree(shop: Shop) -> None:
    shop.produce(shop.orders(3, shop.register()))
    shop.drain()
    shop.produce(shop.orders(3, shop.register(ADDED), first=3, schema=ADDED))
    landed = list[int]()
    total = shop.drain(failpoint=once("evolve.filled", lambda: landed.append(shop.drain().written)))
    assert (landed, total.written) == ([3], 0)
    shop.assert_each_record_once()


def test_a_tables_layout_follows_an_aliases_rename_of_its_columns(shop_of: ShopOf, tmp_path: Path) -> None:
    """Partitions, sort order and key are declared by the names of before, in the preview, the run, upkeep and a replay."""
    table = {"partition_by": ("truncate(1, user)",), "sort_by": ("amount desc",)}
    shop = shop_of(partitions=1, write=Upsert(key=("order_id",)), table=table)
    shop.produce(shop.orders(2, shop.register()))
    shop.drain()
    names = {"order_id": "number", "user": "customer", "amount": "price"}
    fields = [{**field, "name": names[field["name"]], "aliases": [field["name"]]} for field in ORDER["fields"]]
    renamed = {**ORDER, "fields": fields}
    schema_id = shop.register(renamed)
    shop.produce([frame(schema_id, avro(renamed, {"number": 1, "customer": "new", "price": 2.5}))])
    assert [row.values["customer"] for row in previewed(shop, 1).rows] == ["new"]
    shop.drain()
    shop.drain()
    assert {row["number"]: row["customer"] for row in shop.landed()} == {0: "u0", 1: "new"}
    assert not [event for event in shop.seen("table_differs") if "partition_by" in event["message"]]
    assert replay(shop.pipeline, shop.job(), shop.registry(), shop.environment, tmp_path).findings == ()
    shop.compact()
    assert {row["number"] for row in shop.landed()} == {0, 1}


BUCKET = version(
    order_id_bucket={"type": ["null", "int"], "default": None},
    user_trunc={"type": "double", "aliases": ["amount"]},
    amount=None,
)


def of_buckets(shop_of: ShopOf) -> Shop:
    return shop_of(partitions=1, table={"partition_by": ("bucket(4, order_id)", "truncate(1, user)")})


def put_bucket(shop: Shop) -> None:
    value = {"order_id": 7, "user": "ada", "order_id_bucket": 3, "user_trunc": 1.5}
    shop.produce([frame(shop.register(BUCKET), avro(BUCKET, value))])


def test_a_field_of_a_partition_fields_name_gets_a_column_of_another_name(shop_of: ShopOf) -> None:
    shop = of_buckets(shop_of)
    shop.produce(shop.orders(1, shop.register()))
    shop.drain()
    put_bucket(shop)
    for _ in range(2):
        shop.drain()
    (row,) = (row for row in shop.landed() if row["order_id"] == 7)
    hashed = next(name for name in row if name.startswith("order_id_bucket_"))
    assert (row[hashed], row["amount"]) == (3, 1.5)


def test_a_new_tables_partition_field_of_a_columns_name_gets_another_name(shop_of: ShopOf) -> None:
    shop = of_buckets(shop_of)
    put_bucket(shop)
    shop.drain()
    (row,) = shop.landed()
    assert (row["order_id_bucket"], row["user_trunc"]) == (3, 1.5)


def test_a_partition_fields_name_is_taken_in_a_struct_and_is_its_own_columns_again(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1, table={"partition_by": ("bucket(4, at.id)", "user")})

    def put(name: str, alias: str, **at: int) -> None:
        inner = {"type": "record", "name": "At", "fields": [{"name": of, "type": "int"} for of in at]}
        fields = [{"name": name, "type": "string", "aliases": [alias]}, {"name": "at", "type": inner}]
        schema = {"type": "record", "name": "Order", "fields": fields}
        shop.produce([frame(shop.register(schema), avro(schema, {name: "u", "at": at}))])
        shop.drain()

    put("user", "none", id=1)
    put("customer", "user", id=2, id_bucket=5)
    put("user", "customer", id=3, id_bucket=6)
    found = sorted((row["user"], *row["at"].values()) for row in shop.landed())
    assert found == [("u", 1, None), ("u", 2, 5), ("u", 3, 6)]
