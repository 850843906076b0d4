"""Masks: what lands in place of values, and that no file has a value that is masked."""

from __future__ import annotations

import gzip
import hashlib
import hmac
import json
from collections.abc import Hashable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from frazil.clients.registry.schemas import SchemaType
from frazil.clients.secrets import Secrets
from frazil.dead_letters.listing import listing
from frazil.dead_letters.show import show
from frazil.declaration import (
    Append,
    Changelog,
    Debezium,
    Encrypted,
    ErrorMode,
    EventTime,
    Hmac,
    Json,
    Nullify,
    Redact,
    Secret,
    Shape,
    Truncate,
    Upsert,
)
from frazil.errors import InvalidInput, MasksDiffer, RejectedRecords
from frazil.ingest.preview.preview import preview
from frazil.job.shared_reads import SharedReads
from frazil.lake.read.stored_tables import Lake
from frazil.recovery.decisions import Accepted
from tests.scenarios.test_where import totals
from tests.support.debezium_events import PLACEHOLDER, Source
from tests.support.declared_schemas import avsc, descriptors
from tests.support.jobs import HMAC_KEY
from tests.support.keyed_topic import record
from tests.support.proto import framed, protobuf
from tests.support.shop import Shop, ShopOf, avro, frame
from tests.support.topics import redeclared

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
KEYED = Hmac(Secret(env="MASK_KEY"))


def hidden(text: str | bytes) -> str:
    """Return the HMAC that Python makes of a text."""
    return hmac.new(HMAC_KEY.encode(), text if isinstance(text, bytes) else text.encode(), hashlib.sha256).hexdigest()


CARD = {
    "type": "record",
    "name": "Card",
    "fields": [{"name": "number", "type": "string"}, {"name": "kind", "type": "string"}],
}
ROW = record("Person", id="long", email=["null", "string"], born={"type": "int", "logicalType": "date"}, card=CARD)
ROW["fields"] += [
    {"name": "phones", "type": {"type": "array", "items": "string"}},
    {"name": "cards", "type": {"type": "array", "items": "Card"}},
    {"name": "marks", "type": {"type": "map", "values": "string"}},
    {"name": "income", "type": "long"},
    {"name": "street", "type": "string"},
    {"name": "note", "type": "string"},
    {"name": "score", "type": ["null", "double"], "default": None},
]
MASKS = {
    "email": KEYED,
    "born": Truncate("year"),
    "card.number": Redact(),
    "phones.element": KEYED,
    "cards.element.number": KEYED,
    "marks.key": KEYED,
    "marks.value": Redact(),
    "income": Truncate("1000"),
    "street": Truncate("3"),
    "note": Nullify(),
}
CANARY = "canary-8d1f"


def person(number: int, email: str | None = f"{CANARY}@mail") -> dict[str, Any]:
    """Return a value of `ROW` whose masked texts have the canary."""
    card = {"number": f"{CANARY}-{number}", "kind": "visa"}
    more = {"marks": {f"{CANARY}-k": f"{CANARY}-v"}, "income": 12_345, "street": f"Sea {CANARY}", "note": CANARY}
    return {
        "id": number,
        "email": email,
        "born": 7_000,
        "card": card,
        "phones": [f"{CANARY}-1"],
        "cards": [card],
        **more,
    }


def test_each_mask_hides_its_values(shop_of: ShopOf) -> None:
    shop = shop_of(shape=Shape(mask=MASKS, where="email is null or email <> 'other'"))
    schema = shop.register(ROW)
    shop.produce(
        [frame(schema, avro(ROW, person(n, email))) for n, email in enumerate((f"{CANARY}@mail", None, "other"))]
    )
    assert shop.drain().filtered == {"where": 1}, "a condition reads plain values"
    full, bare = sorted(shop.landed(), key=lambda row: row["id"])
    assert (full["email"], bare["email"]) == (hidden(f"{CANARY}@mail"), None)
    assert full["born"] == date(1989, 1, 1)
    assert (full["card"]["number"], full["card"]["kind"]) == ("***", "visa")
    assert (full["phones"], full["cards"][0]["number"]) == ([hidden(f"{CANARY}-1")], hidden(f"{CANARY}-0"))
    assert dict(full["marks"]) == {hidden(f"{CANARY}-k"): "***"}
    assert (full["income"], full["street"], full["note"]) == (12_000, "Sea", None)
    assert totals(shop) == {"read": 3, "landed": 2, "filtered": 1}


def folders_of(shop: Shop) -> list[Path]:
    """Return the folders of a pipeline's tables, with data and metadata."""
    warehouse = Path(shop.environment.catalog.warehouse.removeprefix("file:"))
    return [*warehouse.glob(shop.pipeline.table.identifier.replace(".", "/") + "*")]


def blocks_of(shop: Shop) -> list[Path]:
    """Return the folders in which Spark keeps blocks and spills."""
    manager = shop.spark._jvm.org.apache.spark.SparkEnv.get().blockManager().diskBlockManager()
    return [*map(Path, manager.localDirsString())]


def files_with(text: str, *folders: Path) -> list[str]:
    """Return the files that have a text, also in compressed columns: parquet is read, and so is what gzip holds."""

    found = []
    for path in (path for folder in folders for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        if path.name.endswith(".parquet"):
            data += str(parquet.read_table(path).to_pylist()).encode()
        if data[:2] == b"\x1f\x8b":
            data += gzip.decompress(data)
        if text.encode() in data:
            found.append(path.name)
    return found


@pytest.mark.parametrize("write", [Append(), Upsert(), Changelog()])
def test_no_file_has_a_masked_value(
    shop_of: ShopOf, write: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Rows, dead letters with their reasons, metadata, messages and what Spark keeps on this machine."""
    masks = {**MASKS, "_kafka_key": KEYED, "_kafka_headers.who": KEYED}
    shop = shop_of(
        shape=Shape(mask=masks),
        write=write,
        key_format="text",
        headers=True,
        on_error=ErrorMode.DEAD_LETTER,
        max_rejected_percent=100,
    )
    schema = shop.register(ROW)
    good = [frame(schema, avro(ROW, person(n))) for n in range(5)]
    shop.produce(good, key=CANARY.encode(), headers=[("who", CANARY.encode()), ("plain", b"there")])
    others = [good[0][:-3], f"bad {CANARY}".encode(), None]
    shop.produce(others, key=f"{CANARY} 2".encode(), headers=[("who", CANARY.encode())])
    shop.drain()
    rows = shop.landed()
    assert hidden(CANARY) in {row["_kafka_key"] for row in rows}
    assert {row["_kafka_key"] for row in rows} <= {hidden(CANARY), hidden(f"{CANARY} 2")}
    row = next(row for row in rows if row["_kafka_key"] == hidden(CANARY))
    headers = {each["key"]: bytes(each["value"]) for each in row["_kafka_headers"]}
    assert headers == {"who": hidden(CANARY).encode(), "plain": b"there"}
    letters = shop.dead()
    assert letters
    assert {str((one["key"], one["value"], one["headers"])) for one in letters} <= {
        "(None, None, None)",
        "(None, None, [])",
    }
    lake = folders_of(shop)
    assert files_with(hidden(f"{CANARY}@mail"), *lake), "the search finds what is there"
    assert files_with(CANARY, *lake, *blocks_of(shop)) == []
    assert files_with(HMAC_KEY, *lake, *blocks_of(shop)) == []
    assert CANARY not in json.dumps([dict(event) for event in shop.events], default=str)
    assert HMAC_KEY not in caplog.text
    shop.assert_proven(deep=True)


def test_one_secret_makes_one_text_of_equal_values(shop_of: ShopOf) -> None:
    columns = ("a string", "b long", "c decimal(10,2)", "d binary", "e date")
    shop = shop_of(value_format="json", columns=columns, shape=Shape(mask=dict.fromkeys("abcde", KEYED)))
    shop.produce([b'{"a": "50", "b": 50, "c": 50.00, "d": "NTA=", "e": "2026-01-31"}'])
    shop.drain()
    (row,) = shop.landed()
    assert {row[name] for name in "abcd"} == {hidden("50")}
    assert row["e"] == hidden("2026-01-31")


@pytest.mark.parametrize(
    ("masks", "what"),
    [
        ({"nothing": Redact()}, "there is no field nothing"),
        ({"card": KEYED}, "and has no mask hmac"),
        ({"card.number.x": KEYED}, "is of type string, and has no field x"),
        ({"phones": KEYED}, "and has no mask hmac"),
        ({"phones.x": KEYED}, "has no field x"),
        ({"marks.key": Redact()}, "one key for several"),
        ({"email": Truncate("year")}, "has no mask truncate"),
        ({"score": KEYED}, "is of type double, and has no mask hmac"),
        ({"born": Truncate("hour")}, "has no mask truncate"),
    ],
)
def test_a_mask_that_does_not_fit_stops_before_a_commit(shop_of: ShopOf, masks: dict[str, Any], what: str) -> None:
    shop = shop_of(shape=Shape(mask=masks))
    shop.produce([frame(shop.register(ROW), avro(ROW, person(1)))])
    with pytest.raises(InvalidInput, match=what):
        shop.drain()


def test_keys_are_masked_by_hmac_only_and_orders_are_not(shop_of: ShopOf) -> None:
    value = record("Order", email="string", rank="long")
    shop = shop_of(write=Upsert(key="email"), shape=Shape(mask={"email": KEYED}))
    schema = shop.register(value)
    for rank in (1, 2):
        shop.produce([frame(schema, avro(value, {"email": "a@b", "rank": rank}))], partition=0)
    shop.drain()
    assert [(row["email"], row["rank"]) for row in shop.landed()] == [(hidden("a@b"), 2)]
    shop.assert_proven(deep=True)
    for write, mask, what in (
        (Upsert(key="email"), {"email": Redact()}, "several keys one"),
        (Upsert(key="email", order_by="rank"), {"rank": Truncate("10")}, "orders records"),
    ):
        other = replace(
            shop.pipeline,
            name="masked_otherwise",
            write=write,
            shape=Shape(mask=mask),
            table=replace(shop.pipeline.table, identifier="shop.masked_otherwise"),
        )
        with pytest.raises(InvalidInput, match=what):
            shop.drain(other)


def test_select_and_the_row_before_a_change_have_masked_values(shop_of: ShopOf) -> None:
    shape = Shape(
        select="id, note as remark, upper(customer) as customer",
        mask={"customer": KEYED, "note": KEYED},
        where="customer <> 'out'",
    )
    shop = shop_of(write=Upsert(), key_format="avro", envelope=Debezium(), shape=shape)
    source = Source(shop)
    source.write("c", 1, customer="a", note="n")
    source.write("u", 1, customer="b", note=PLACEHOLDER)
    source.write("c", 2, customer="out", note="n")
    shop.drain()
    assert [(row["customer"], row["remark"]) for row in shop.landed()] == [(hidden("b").upper(), hidden("n"))]
    shop.assert_proven(deep=True)


def test_a_new_field_with_the_name_of_a_renamed_one_is_refused(shop_of: ShopOf) -> None:
    """The renamed field holds what the mask was declared for, and would land as it is."""
    old, new = record("Person", id="long", email="string"), record("Person", id="long", mail="string", email="string")
    new["fields"][1] |= {"aliases": ["email"], "default": ""}
    new["fields"][2]["default"] = ""
    shop = shop_of(shape=Shape(mask={"email": KEYED}), partitions=1)
    shop.produce([frame(shop.register(old), avro(old, {"id": 1, "email": "a"}))])
    shop.drain()
    shop.produce([frame(shop.register(new), avro(new, {"id": 2, "mail": "b", "email": "c"}))])
    with pytest.raises(InvalidInput, match="mail was email, which is masked and is another field now"):
        shop.drain()
    shop.pipeline = replace(shop.pipeline, shape=Shape(mask={"email": KEYED, "mail": KEYED}))
    with pytest.raises(MasksDiffer, match="frazil accept"):
        shop.drain()
    shop.accept(Accepted.MASK_FROM_NOW_ON)
    shop.drain()
    assert {row["id"]: (row["mail"], row["email"]) for row in shop.landed()} == {
        1: (None, hidden("a")),
        2: (hidden("b"), hidden("c")),
    }


def test_a_version_that_gives_a_masked_name_away_later_is_rejected(shop_of: ShopOf) -> None:
    versions = [record("Person", id="long", **dict.fromkeys(names, "string")) for names in (("email",), ("mail",))]
    versions.append(record("Person", id="long", mail="string", email="string"))
    for version in versions[1:]:
        version["fields"][1] |= {"aliases": ["email"], "default": ""}
    versions[2]["fields"][2]["default"] = ""
    shop = shop_of(shape=Shape(mask={"email": KEYED}), partitions=1, on_error=ErrorMode.DEAD_LETTER)
    for number, version in enumerate(versions):
        value = {"id": number, **{field["name"]: "a" for field in version["fields"][1:]}}
        shop.produce([frame(shop.register(version), avro(version, value))])
        shop.drain()
    assert {row["id"]: row["mail"] for row in shop.landed()} == {0: hidden("a"), 1: hidden("a")}
    assert [letter["reason"] for letter in shop.dead()] == ["incompatible_schema"]


@pytest.mark.parametrize("other", [KEYED, Redact()])
def test_both_names_of_a_field_may_have_the_same_mask(shop_of: ShopOf, other: Any) -> None:
    value = record("Person", id="long", mail="string")
    value["fields"][1]["aliases"] = ["email"]
    shop = shop_of(shape=Shape(mask={"email": KEYED, "mail": other}))
    shop.produce([frame(shop.register(value), avro(value, {"id": 1, "mail": "a"}))])
    if other is KEYED:
        shop.drain()
        assert [row["mail"] for row in shop.landed()] == [hidden("a")]
        return
    with pytest.raises(InvalidInput, match="email is mail now, and both have masks, which are not the same"):
        shop.drain()


def test_a_mask_of_a_field_that_the_topic_lost_stays_declared(shop_of: ShopOf) -> None:
    shop = shop_of(value_format="json", columns=("id long", "email string"), shape=Shape(mask={"email": KEYED}))
    shop.produce([b'{"id": 1, "email": "a"}'])
    shop.drain()
    topic = replace(shop.pipeline.topic, value=Json(columns=("id long",)))
    shop.pipeline = replace(shop.pipeline, topic=topic)
    shop.produce([b'{"id": 2, "email": "b"}'])
    shop.drain()
    assert {row["id"]: row["email"] for row in shop.landed()} == {1: hidden("a"), 2: None}


def test_a_lost_field_of_a_flattened_struct_keeps_its_mask(shop_of: ShopOf) -> None:
    shape = Shape(select="id, customer.*", mask={"customer.email": KEYED})
    columns = ("id long", "customer struct<email: string, land: string>")
    shop = shop_of(value_format="json", columns=columns, shape=shape)
    value = b'{"id": 1, "customer": {"email": "a", "land": "NO"}}'
    shop.produce([value])
    shop.drain()
    topic = replace(shop.pipeline.topic, value=Json(columns=("id long", "customer struct<land: string>")))
    shop.pipeline = replace(shop.pipeline, topic=topic)
    shop.produce([value.replace(b"1", b"2")])
    shop.drain()
    assert {row["id"]: (row["email"], row["land"]) for row in shop.landed()} == {
        1: (hidden("a"), "NO"),
        2: (None, "NO"),
    }


def test_many_masks_cost_as_much_as_their_number(shop_of: ShopOf) -> None:
    """Their expressions are one for each, also where structs hold structs: twice as many for each would not end here."""
    names = [f"f{n}" for n in range(40)]
    inner = ", ".join(f"{name}: string" for name in names)
    columns = (*(f"{name} string" for name in names), f"a struct<b: struct<c: struct<{inner}>>>")
    paths = [*names, *(f"a.b.c.{name}" for name in names)]
    shop = shop_of(value_format="json", columns=columns, shape=Shape(mask=dict.fromkeys(paths, Redact())))
    values = dict.fromkeys(names, "x")
    shop.produce([json.dumps({**values, "a": {"b": {"c": values}}}).encode()])
    shop.drain()
    (row,) = shop.landed()
    assert {row["f39"], row["a"]["b"]["c"]["f0"], row["a"]["b"]["c"]["f39"]} == {"***"}


@pytest.mark.parametrize(
    ("shape", "what"),
    [
        (
            Shape(select="card.number as key, id", mask={"card.number": Redact(), "card.kind": KEYED}),
            "card.number is of",
        ),
        (Shape(select="card.number as key, id", mask={"card": Nullify()}), "card is of the key, and nullify makes"),
    ],
)
def test_a_field_of_the_key_that_a_mask_makes_one_is_refused(shop_of: ShopOf, shape: Shape, what: str) -> None:
    shop = shop_of(write=Upsert(key="key"), shape=shape)
    shop.produce([frame(shop.register(ROW), avro(ROW, person(1)))])
    with pytest.raises(InvalidInput, match=what):
        shop.drain()


def test_a_field_next_to_that_of_the_key_has_any_mask(shop_of: ShopOf) -> None:
    shape = Shape(select="card.number as key, card.kind as kind", mask={"card.number": KEYED, "card.kind": Redact()})
    shop = shop_of(write=Upsert(key="key"), shape=shape)
    schema = shop.register(ROW)
    shop.produce([frame(schema, avro(ROW, person(n))) for n in range(3)], partition=0)
    shop.drain()
    assert {(row["key"], row["kind"]) for row in shop.landed()} == {(hidden(f"{CANARY}-{n}"), "***") for n in range(3)}
    shop.assert_proven(deep=True)


def test_a_mask_follows_a_renamed_field(shop_of: ShopOf) -> None:
    old, new = record("Person", id="long", email="string"), record("Person", id="long", mail="string")
    new["fields"][1]["aliases"] = ["email"]
    shop = shop_of(shape=Shape(mask={"email": KEYED}), partitions=1)
    first = shop.register(old)
    shop.produce([frame(first, avro(old, {"id": 1, "email": "a"}))])
    shop.drain()
    second = shop.register(new)
    shop.produce([frame(second, avro(new, {"id": 2, "mail": "b"})), frame(first, avro(old, {"id": 3, "email": "c"}))])
    shop.drain()
    assert {row["id"]: row["mail"] for row in shop.landed()} == {1: hidden("a"), 2: hidden("b"), 3: hidden("c")}


def test_the_row_before_a_change_is_masked(shop_of: ShopOf) -> None:
    envelope = Debezium(replica_identity="full")
    shop = shop_of(write=Changelog(), key_format="avro", envelope=envelope, shape=Shape(mask={"customer": KEYED}))
    source = Source(shop)
    source.is_full = True
    source.write("c", 1, customer="a", note="n")
    source.write("u", 1, customer="b", note="n")
    source.delete(1)
    shop.drain()
    rows = sorted(shop.landed(), key=lambda row: row["_kafka_offset"])
    before = [row["_before"] and row["_before"]["customer"] for row in rows if row["_before"] is not None]
    assert [row["customer"] for row in rows[:2]] == [hidden("a"), hidden("b")]
    assert before[0] == hidden("a")
    assert {"a", "b"}.isdisjoint(before)


def test_changed_masks_of_a_table_are_decided(shop_of: ShopOf) -> None:
    shop = shop_of()
    schema = shop.register()
    shop.produce(shop.orders(1, schema))
    shop.drain()
    with pytest.raises(InvalidInput, match="there is nothing to accept"):
        shop.accept(Accepted.MASK_FROM_NOW_ON)
    masked = shop.pipeline
    for number, shape in enumerate((Shape(mask={"user": KEYED}), Shape(mask={"user": Redact()}))):
        shop.pipeline = replace(masked, shape=shape)
        shop.produce(shop.orders(1, schema, first=10 + number))
        for _ in range(2):
            with pytest.raises(MasksDiffer, match=r"frazil accept \S+ mask-from-now-on"):
                shop.drain()
        shop.accept(Accepted.MASK_FROM_NOW_ON)
        shop.drain()
    shop.pipeline = replace(shop.pipeline, shape=replace(shop.pipeline.shape, where="order_id >= 0"))
    shop.produce(shop.orders(1, schema, first=20))
    shop.drain()
    rows = {row["order_id"]: row["user"] for row in shop.landed()}
    assert rows == {0: "u0", 10: hidden("u0"), 11: "***", 20: "***"}
    shop.assert_proven(deep=True)


@pytest.mark.parametrize(
    ("write", "before", "after"),
    [
        (Upsert(key="user"), {}, {"user": KEYED}),
        (Upsert(key="user"), {"user": KEYED}, {"user": Hmac(Secret(env="OTHER"))}),
        (Upsert(), {}, {"_kafka_key": KEYED}),
        (Append(), {}, {"order_id": KEYED}),
        (Append(), {"order_id": KEYED}, {}),
        (Append(), {"order_id": KEYED}, {"order_id": Nullify()}),
        (Upsert(key="number"), {"card.number": KEYED}, {}),
        (Append(), {}, {"income": Redact()}),
    ],
)
def test_masks_that_change_keys_or_types_are_not_accepted(shop_of: ShopOf, write: Any, before: Any, after: Any) -> None:
    is_flat = not {"card.number", "income"}.isdisjoint({**before, **after})
    shape = Shape(mask=before or None, select="id, card.*, income as money" if is_flat else None)
    shop = shop_of(write=write, key_format="text", shape=shape)
    shop.produce([frame(shop.register(ROW), avro(ROW, person(1)))] if is_flat else shop.orders(1, shop.register()))
    shop.drain()
    shop.pipeline = replace(shop.pipeline, shape=replace(shape, mask=after or None))
    with pytest.raises(MasksDiffer, match="name another table") as refused:
        shop.drain()
    assert "frazil accept" not in str(refused.value)
    with pytest.raises(InvalidInput, match="a key other values, or a column another type"):
        shop.accept(Accepted.MASK_FROM_NOW_ON)
    shop.pipeline = replace(shop.pipeline, shape=shape)
    shop.drain()


def test_a_preview_shows_masked_values(shop_of: ShopOf) -> None:
    shop = shop_of(shape=Shape(mask={"user": KEYED}), partitions=1)
    shop.produce(shop.orders(1, shop.register()))
    found = preview(shop.pipeline, shop.job(), shop.registry(), count=3)
    assert found.rows[0].values["user"] == hidden("u0")


def test_a_masked_pipeline_shares_no_read(shop_of: ShopOf) -> None:
    """A shared read is on the local disk as the topic has it."""
    entered = list[str]()

    class Noted(SharedReads):
        def enter(self, pipeline: str, source: Hashable, *, in_slices: bool) -> None:
            entered.append(pipeline)
            super().enter(pipeline, source, in_slices=in_slices)

    shop = shop_of(shape=Shape(mask={"user": KEYED}))
    plain = replace(
        shop.pipeline, name="plain", shape=Shape(), table=replace(shop.pipeline.table, identifier="shop.plain_reads")
    )
    shop.produce(shop.orders(1, shop.register()))
    outcomes = shop.drained(shop.pipeline, plain, reads=Noted())
    assert not any(outcome.error for outcome in outcomes.values())
    assert set(entered) == {"plain"}


def test_a_dead_letter_has_the_masked_view_and_no_bytes(shop_of: ShopOf) -> None:
    shape = Shape(mask={"email": KEYED, "note": Nullify()}, where="10 / id > 0")
    shop = shop_of(shape=shape, on_error=ErrorMode.DEAD_LETTER, max_rejected_percent=100)
    schema = shop.register(ROW)
    shop.produce([b"bad!!", frame(schema, avro(ROW, person(0)))], partition=0)
    assert shop.drain().rejected == {"wrong_magic": 1, "transform_failed": 1}
    lake = Lake(shop.environment, Secrets({}).read)
    bad, failed = (show(shop.pipeline, lake, partition=0, offset=offset) for offset in (0, 1))
    assert bad is not None
    assert (bad.is_masked, bad.value.data, bad.masked) == (True, None, None)
    assert failed is not None
    seen = json.loads(failed.masked or "")
    assert (seen["email"], seen["note"], seen["card"]["kind"]) == (hidden(f"{CANARY}@mail"), None, "visa")
    assert "_decoded" not in seen


@pytest.mark.parametrize("write", [Append(), Upsert()])
def test_values_of_text_have_a_masked_view_of_their_key_alone(shop_of: ShopOf, write: Any) -> None:
    more: dict[str, Any] = {"on_error": ErrorMode.DEAD_LETTER, "max_rejected_percent": 100}
    shape = Shape(mask={"_kafka_key": KEYED}, dead_letters=Encrypted(Secret(env="LETTERS")))
    shop = shop_of(write=write, value_format="text", key_format="text", shape=shape, **more)
    shop.produce([b"good", b"\xff"], key=b"k", partition=0)
    shop.drain()
    (letter,) = shop.dead()
    assert (letter["masked"], letter["value"][:13]) == (None, b"frazil-gcm-1:")
    assert [row["_kafka_key"] for row in shop.landed()] == [hidden("k")]


def test_the_masked_view_has_no_omitted_values(shop_of: ShopOf) -> None:
    shop = shop_of(
        write=Upsert(),
        key_format="avro",
        envelope=Debezium(),
        shape=Shape(mask={"note": KEYED}),
        on_error=ErrorMode.DEAD_LETTER,
        max_rejected_percent=100,
    )
    source = Source(shop)
    source.write("u", 1, customer="a", note=PLACEHOLDER)
    assert shop.drain().rejected == {"value_unavailable": 1}
    (letter,) = shop.dead()
    assert (json.loads(letter["masked"])["customer"], json.loads(letter["masked"])["note"]) == ("a", None)


@pytest.mark.parametrize("write", [Append(), Upsert()])
def test_dead_letters_are_kept_encrypted(shop_of: ShopOf, write: Any) -> None:
    letters = Encrypted(Secret(env="LETTERS"))
    shape = Shape(mask={**MASKS, "_kafka_key": KEYED, "_kafka_headers.who": KEYED}, dead_letters=letters)
    more: dict[str, Any] = {"on_error": ErrorMode.DEAD_LETTER, "max_rejected_percent": 100, "headers": True}
    shop = shop_of(write=write, key_format="text", shape=shape, **more)
    schema = shop.register(ROW)
    good, headers = frame(schema, avro(ROW, person(1))), [("who", CANARY.encode()), ("other", None)]
    shop.produce([good, good[:-3], f"bad {CANARY}".encode()], key=CANARY.encode(), headers=headers, partition=0)
    shop.produce([good], key=b"\xff", partition=0)
    shop.drain()
    lake = folders_of(shop)
    assert files_with(CANARY, *lake, *blocks_of(shop)) == []
    assert {letter["value"][:13] for letter in shop.dead()} == {b"frazil-gcm-1:"}
    reader = Lake(shop.environment, lambda _: HMAC_KEY)
    found = show(shop.pipeline, reader, partition=0, offset=1)
    assert found is not None
    assert (found.value.data, found.key.data, found.headers) == (good[:-3], CANARY.encode(), tuple(headers))
    assert {letter.key for letter in listing(shop.pipeline, reader).letters} == {None}
    last = show(shop.pipeline, reader, partition=0, offset=3)
    assert (last.key.data if last else None) == (b"\xff" if write.has_key else None)
    with pytest.raises(InvalidInput, match="is encrypted with another secret, or was changed"):
        show(shop.pipeline, Lake(shop.environment, lambda _: HMAC_KEY + "x"), partition=0, offset=1)
    shop.pipeline = replace(shop.pipeline, shape=shape.of_rows)
    with pytest.raises(InvalidInput, match="partition 0, offset 1 is encrypted"):
        show(shop.pipeline, reader, partition=0, offset=1)
    shop.produce([f"bad {CANARY}".encode()], partition=0)
    shop.drain()
    assert [letter["value"] for letter in shop.dead()].count(None) == 1


def test_a_field_of_the_key_is_known_by_its_earlier_name(shop_of: ShopOf) -> None:
    renamed = json.loads(json.dumps(ROW))
    card = renamed["fields"][3]["type"]["fields"]
    card[0] = {"name": "no", "aliases": ["number"], "type": "string"}
    shop = shop_of(write=Upsert(key="key"), shape=Shape(select="card.no as key", mask={"card.number": Redact()}))
    shop.register(ROW)
    value = {**person(1), "card": {"no": "1", "kind": "k"}, "cards": []}
    shop.produce([frame(shop.register(renamed), avro(renamed, value))])
    with pytest.raises(InvalidInput, match=r"card.no is of the key, and redact makes several keys one"):
        shop.drain()


def test_masks_of_a_renamed_key_are_those_of_the_table(shop_of: ShopOf) -> None:
    """The table's column has the newest name, the mask an earlier one: with it, keys would have other values."""
    old, new = record("Person", email="string", n="long"), record("Person", mail="string", n="long")
    new["fields"][0]["aliases"] = ["email"]
    new["fields"].append({"name": "phone", "type": "long", "default": 0})
    shop = shop_of(write=Upsert(key="email"), shape=Shape(mask={"email": Redact()}))
    shop.register(old)
    schema = shop.register(new)
    shop.produce([frame(schema, avro(new, {"mail": "a", "n": 1, "phone": 1}))])
    with pytest.raises(InvalidInput, match="mail is of the key, and redact makes several keys one"):
        shop.drain()
    shop.pipeline = replace(shop.pipeline, shape=Shape(mask={"n": Nullify()}))
    shop.drain()
    made, wrong = shop.pipeline, replace(shop.pipeline, shape=Shape(mask={"n": Nullify(), "email": KEYED}))
    with pytest.raises(InvalidInput, match="a key other values"):
        shop.accept(Accepted.MASK_FROM_NOW_ON, wrong)
    wrong = replace(made, write=Upsert(key="mail"), shape=wrong.shape)
    shop.accept(Accepted.MASK_FROM_NOW_ON, wrong)
    with pytest.raises(MasksDiffer, match="a key other values"):
        shop.drain(wrong)
    shop.accept(Accepted.MASK_FROM_NOW_ON, made)
    shop.produce([frame(schema, avro(new, {"mail": "a", "n": 2, "phone": 2}))])
    shop.drain(made)
    assert [row["mail"] for row in shop.landed()] == ["a"]


def test_a_new_field_gets_a_mask_before_it_lands(shop_of: ShopOf) -> None:
    old, new = record("Person", id="long"), record("Person", id="long", phone="long")
    new["fields"][1]["default"] = 0
    shop = shop_of(write=Upsert(key="id"))
    shop.produce([frame(shop.register(old), avro(old, {"id": 1}))])
    shop.drain()
    shop.pipeline = replace(shop.pipeline, shape=Shape(mask={"phone": KEYED}))
    shop.produce([frame(shop.register(new), avro(new, {"id": 2, "phone": 5}))])
    shop.accept(Accepted.MASK_FROM_NOW_ON)
    shop.drain()
    assert {row["id"]: row["phone"] for row in shop.landed()} == {1: None, 2: hidden("5")}


def test_a_masked_text_key_is_checked_before(shop_of: ShopOf) -> None:
    """Bytes that name a schema, and those that are no text, are no keys: their record is rejected, and kept without bytes."""
    shop = shop_of(
        write=Upsert(),
        key_format="text",
        shape=Shape(mask={"_kafka_key": KEYED}),
        on_error=ErrorMode.DEAD_LETTER,
        max_rejected_percent=100,
    )
    schema = shop.register()
    for key in (b"good", b"\0\0\0\0\1key", b"\xff\xfe"):
        shop.produce(shop.orders(1, schema), key=key, partition=0)
    assert shop.drain().rejected == {"key_registry_frame": 1, "key_undecodable": 1}
    assert [row["_kafka_key"] for row in shop.landed()] == [hidden("good")]
    assert {letter["key"] for letter in shop.dead()} == {None}


@pytest.mark.parametrize("write", [Append(), Upsert(), Upsert(key="email")])
def test_a_masked_field_of_a_decoded_key_is_refused(shop_of: ShopOf, write: Any) -> None:
    shop = shop_of(write=write, key_format="avro", shape=Shape(mask={"email": KEYED}))
    key, value = record("K", email="string"), record("V", email="string", n="long")
    key_id = shop.registry_admin.register(f"{shop.topic}-key", json.dumps(key))
    shop.produce(
        [frame(shop.register(value), avro(value, {"email": "a", "n": 1}))], key=frame(key_id, avro(key, {"email": "a"}))
    )
    with pytest.raises(InvalidInput, match="email is a field of the record's key, too"):
        shop.drain()


def test_the_time_of_an_event_is_compared_before_its_mask(shop_of: ShopOf) -> None:
    shape = Shape(mask={"at": Truncate("year")}, event_time=EventTime("at", oldest="1 day"))
    shop = shop_of(
        value_format="json",
        columns=("id long", "at timestamptz"),
        shape=shape,
        on_error=ErrorMode.DEAD_LETTER,
        max_rejected_percent=100,
    )
    for number, at in ((1, "2026-01-31"), (2, "2026-01-01")):
        shop.produce(
            [f'{{"id": {number}, "at": "{at}T00:00:00Z"}}'.encode()], timestamp=1_769_817_600_000
        )  # 2026-01-31
    assert shop.drain().rejected == {"event_time": 1}
    assert [(row["id"], row["at"].day) for row in shop.landed()] == [(1, 1)]


def test_an_expression_over_a_masked_time_is_no_event_time(shop_of: ShopOf) -> None:
    shape = Shape(
        select="id, date_trunc('hour', at) as hour",
        mask={"at": Truncate("year")},
        event_time=EventTime("hour", oldest="1 day"),
    )
    shop = shop_of(value_format="json", columns=("id long", "at timestamptz"), shape=shape)
    shop.produce([b'{"id": 1, "at": "2026-01-31T00:00:00Z"}'])
    with pytest.raises(InvalidInput, match="at is masked, and the event time hour is an expression over it"):
        shop.drain()


INFINITY = {"io.debezium.time.Date": (2**31 - 1, -(2**31)), "io.debezium.time.MicroTimestamp": (2**63 - 1, 1 - 2**63)}


@pytest.mark.parametrize("of", INFINITY)
def test_a_time_without_a_year_is_rejected_whatever_its_mask(shop_of: ShopOf, of: str) -> None:
    """Connectors write PostgreSQL's `infinity` as such numbers."""
    columns = ("id long", f"at {of}", f"all list<{of}>")
    masks = {"at": Truncate("year"), "all.element": Truncate("month")}
    shop = shop_of(value_format="json", columns=columns, shape=Shape(mask=masks), max_rejected_percent=100)
    low, high = INFINITY[of]
    rows = [
        {"id": 1, "at": low},
        {"id": 2, "at": high},
        {"id": 3, "at": 0, "all": [0, low]},
        {"id": 4, "at": 0, "all": [0]},
    ]
    shop.produce([json.dumps(row).encode() for row in rows])
    assert shop.drain().rejected == {"undecodable": 3}
    assert [row["id"] for row in shop.landed()] == [4]


def test_a_field_of_the_masked_name_in_other_letters_stops(shop_of: ShopOf) -> None:
    shop = shop_of(shape=Shape(mask={"email": KEYED, "card.number": Redact()}))
    for names in (("eMail", "Number"), ("EMAIL", "Number"), ("eMail", "NUMBER")):
        card = record("Card", **{names[1]: ["null", "string"]})
        row = {**record("Person", id="long"), "fields": [{"name": "id", "type": "long"}]}
        row["fields"] += [{"name": names[0], "type": ["null", "string"], "default": None}]
        row["fields"] += [{"name": "card", "type": ["null", card], "default": None}]
        schema_id = shop.register(row)
        shop.registry_admin.set_compatibility("NONE", f"{shop.topic}-value")
        shop.produce([frame(schema_id, avro(row, {"id": 1, names[0]: "plain", "card": {names[1]: "plain"}}))])
        if names == ("eMail", "Number"):
            shop.drain()
            continue
        with pytest.raises(
            InvalidInput, match=r"(email|card.number)_\w+ is another field with the name (email|card.number)"
        ):
            shop.drain()
    assert "plain" not in str(shop.landed())


@pytest.mark.parametrize("mode", [ErrorMode.DEAD_LETTER, ErrorMode.SUSPEND])
def test_a_map_that_has_a_name_twice_is_rejected_whatever_its_mask(shop_of: ShopOf, mode: ErrorMode) -> None:
    columns, shape = ("id long", "m map<string, string>"), Shape(mask={"m.key": KEYED})
    shop = shop_of(value_format="json", columns=columns, shape=shape, on_error=mode)
    shop.produce([b'{"id": 1, "m": {"k": "a", "k": "b"}}', b'{"id": 2, "m": {"k": "a"}}'])
    if mode is ErrorMode.SUSPEND:
        assert isinstance(shop.ended().error, RejectedRecords)
        shop.accept(Accepted.REJECTED_RECORDS)
    assert shop.drain().rejected == {"undecodable": 1}
    assert [row["id"] for row in shop.landed()] == [2]


@pytest.mark.parametrize("version", [2, 3])
def test_a_json_column_is_redacted_as_a_text(shop_of: ShopOf, version: int) -> None:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "meta": {"type": "object"}}}
    shop = shop_of(value_format="json_schema", shape=Shape(mask={"meta": Redact()}), table={"format_version": version})
    schema_id = shop.registry_admin.register(f"{shop.topic}-value", json.dumps(schema), SchemaType.JSON)
    shop.produce([frame(schema_id, b'{"id": 1, "meta": {"a": "x"}}')])
    shop.drain()
    assert [row["meta"] for row in shop.landed()] == ["***"]


def test_a_log_is_not_compared_with_masked_rows(shop_of: ShopOf) -> None:
    """The ledger's fingerprint of the last record has no bytes of it, and is compared all the same."""
    shop = shop_of(shape=Shape(mask={"user": KEYED}), partitions=1)
    schema = shop.register()
    for first in (0, 1):
        shop.produce(shop.orders(1, schema, first=first))
        shop.drain()
    assert len(shop.landed()) == 2
    with pytest.raises(InvalidInput, match="masked values, which cannot be compared"):
        shop.accept(Accepted.LOG_TRUNCATED_REPLAY)
    shop.pipeline = replace(shop.pipeline, shape=Shape())
    with pytest.raises(InvalidInput, match="masked values, which cannot be compared"):
        shop.accept(Accepted.LOG_TRUNCATED_REPLAY)


def test_another_value_of_a_secret_stops_the_pipeline(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(key="user"), shape=Shape(mask={"user": KEYED}))
    schema = shop.register()
    shop.produce(shop.orders(1, schema))
    shop.drain()
    shop.produce(shop.orders(1, schema))
    with pytest.raises(InvalidInput, match="the secret env MASK_KEY has another value than the one"):
        shop.drain(secret=lambda _: "another key of 30 characters, ok")
    shop.drain()
    assert len(shop.landed()) == 1
    assert HMAC_KEY not in str(shop.stored.properties)


def take_masks(shop: Shop) -> None:
    """Land with changed masks, as an operator accepts them."""
    with pytest.raises(MasksDiffer):
        shop.drain()
    shop.accept(Accepted.MASK_FROM_NOW_ON)
    shop.drain()


@pytest.mark.parametrize("write", [Append(), Upsert(key="id")])
def test_a_masked_field_that_was_renamed_stays_masked_after_its_alias_is_gone(
    shop_of: ShopOf, write: Append | Upsert
) -> None:
    """A declared schema file has one version: nothing says any more what the field was."""

    def schema(name: str, *aliases: str) -> dict[str, Any]:
        fields = [{"name": "id", "type": "long"}, {"name": name, "type": "string", "aliases": list(aliases)}]
        return {"type": "record", "name": "R", "fields": fields}

    first = schema("emailAddress")
    shop = shop_of(write=write, schema=(avsc(first),), shape=Shape(mask={"emailaddress": KEYED}), partitions=1)
    for number, of in enumerate((first, schema("mailAddress", "emailAddress"), schema("mailAddress"))):
        shop.pipeline = redeclared(shop.pipeline, schema=(avsc(of),))
        shop.produce([avro(of, {"id": number, of["fields"][1]["name"]: "plain"})])
        if number < 2:
            shop.drain()
    with pytest.raises(InvalidInput, match="mailaddress was emailaddress, which is masked"):
        shop.drain()
    masks = {"emailaddress": KEYED, "mailaddress": KEYED}
    shop.pipeline = replace(shop.pipeline, shape=Shape(mask=masks))
    take_masks(shop)
    assert sorted(row["id"] for row in shop.landed()) == [0, 1, 2]
    assert "plain" not in str(shop.landed())


def test_a_masked_number_that_was_renamed_stays_masked_after_its_first_version_is_deleted(shop_of: ShopOf) -> None:
    head = 'syntax = "proto3"; message P { int64 id = 1; string %s = 2; repeated C contact = 3; message C { string %s = 1; } }'
    texts = [head % ("emailAddress", "phoneNo"), head % ("mailAddress", "phoneNumber")]
    masks: dict[str, Any] = {"emailaddress": KEYED, "contact.element.phoneno": KEYED}
    shop = shop_of(value_format="protobuf", write=Upsert(key="id"), shape=Shape(mask=masks), partitions=1)

    def produce(number: int, of: str, mail: str, phone: str, schema_id: int) -> None:
        body = protobuf(of, {"id": str(number), mail: "plain", "contact": [{phone: "plain"}]})
        shop.produce([framed(schema_id, body)])

    subject = f"{shop.topic}-value"
    for number, (of, names) in enumerate(
        zip(texts, (("emailAddress", "phoneNo"), ("mailAddress", "phoneNumber")), strict=True)
    ):
        schema_id = shop.registry_admin.register(subject, of, SchemaType.PROTOBUF)
        produce(number, of, *names, schema_id)
        shop.drain()
    shop.registry_admin.delete_version(subject, 1)
    produce(2, texts[1], "mailAddress", "phoneNumber", schema_id)
    said = r"(mailaddress was emailaddress|contact\.element\.phonenumber was contact\.element\.phoneno)"
    with pytest.raises(InvalidInput, match=said):
        shop.drain()
    with pytest.raises(InvalidInput, match=said):
        preview(shop.pipeline, shop.job(), shop.registry(), count=9)
    more = {**masks, "mailaddress": KEYED, "contact.element.phonenumber": KEYED}
    shop.pipeline = replace(shop.pipeline, shape=Shape(mask=more))
    take_masks(shop)
    assert sorted(row["id"] for row in shop.landed()) == [0, 1, 2]
    assert "plain" not in str(shop.landed())


@pytest.mark.parametrize("how", ["file", "registry"])
def test_a_masked_key_that_was_renamed_stays_one_key(shop_of: ShopOf, how: str) -> None:
    head = 'syntax = "proto3"; message P { int64 id = 1; string %s = 2; }'
    texts = [head % "emailAddress", head % "mailAddress"]
    own: dict[str, Any] = {"schema": (descriptors(texts[0]),), "record_name": "P"} if how == "file" else {}
    shape = Shape(mask={"emailaddress": KEYED})
    shop = shop_of(value_format="protobuf", write=Upsert(key="emailaddress"), shape=shape, partitions=1, **own)

    def produce(of: str, name: str) -> None:
        body = protobuf(of, {"id": str(len(shop.journal)), name: "plain"})
        if how == "file":
            shop.produce([body])
            return
        schema_id = shop.registry_admin.register(f"{shop.topic}-value", of, SchemaType.PROTOBUF)
        shop.produce([framed(schema_id, body)])

    produce(texts[0], "emailAddress")
    shop.drain()
    produce(texts[1], "mailAddress")
    if how == "file":
        shop.pipeline = redeclared(shop.pipeline, schema=(descriptors(texts[1]),))
    else:
        shop.drain()
        shop.registry_admin.delete_version(f"{shop.topic}-value", 1)
        produce(texts[1], "mailAddress")
    with pytest.raises(InvalidInput, match="mailaddress was emailaddress, which is masked"):
        shop.drain()
    shop.pipeline = replace(shop.pipeline, shape=Shape(mask={"emailaddress": KEYED, "mailaddress": KEYED}))
    take_masks(shop)
    (row,) = shop.landed()
    assert row["emailaddress"] != "plain"
    shop.assert_proven(deep=True)
