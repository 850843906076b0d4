"""Masked fields that get other names: no plain value lands in a column with masked ones, whatever the schema says of the field."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from frazil.declaration import Append, ErrorMode, Nullify, Redact, Shape, Upsert
from frazil.errors import InvalidInput
from frazil.ingest.preview.preview import preview
from tests.scenarios.test_masks import KEYED, hidden, take_masks
from tests.support.declared_schemas import avsc, descriptors
from tests.support.keyed_topic import record
from tests.support.proto import protobuf
from tests.support.shop import Shop, ShopOf, avro, frame
from tests.support.topics import redeclared
from tests.support.variants import first_short

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
PROTO = 'syntax = "proto3"; message P { int64 id = 1; %s }'
CHAIN = (("email",), ("mail", "email"), ("contact", "mail"))
"""A field, and its name and alias in each version: the last one says nothing of the first."""


def named(*fields: Sequence[str], **more: Any) -> dict[str, Any]:
    """Return a schema of text fields, each with its aliases."""
    made = [{"name": name, "type": "string", "aliases": aliases} for name, *aliases in fields]
    others = [{"name": name, "type": of} for name, of in more.items()]
    return {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}, *made, *others]}


def nested(outer: Sequence[str], inner: Sequence[str]) -> dict[str, Any]:
    """Return a schema of a struct with a text field."""
    (name, *aliases), (field, *earlier) = outer, inner
    of = {"type": "record", "name": "C", "fields": [{"name": field, "type": "string", "aliases": earlier}]}
    fields = [{"name": "id", "type": "long"}, {"name": name, "type": of, "aliases": aliases}]
    return {"type": "record", "name": "R", "fields": fields}


def filled(of: dict[str, Any], number: int) -> dict[str, Any]:
    """Return a record of a schema, with plain texts."""

    def value(kind: Any) -> Any:
        return {field["name"]: value(field["type"]) for field in kind["fields"]} if isinstance(kind, dict) else "plain"

    return {field["name"]: number if field["type"] == "long" else value(field["type"]) for field in of["fields"]}


def produced(shop: Shop, of: Any, number: int) -> None:
    """Declare a schema file and produce a record of it."""
    is_text = isinstance(of, str)
    shop.pipeline = redeclared(shop.pipeline, schema=(descriptors(of) if is_text else avsc(of),))
    if is_text:
        names = [one.split()[1] for one in of.partition("{")[2].split(";") if "string" in one]
        shop.produce([protobuf(of, {"id": str(number), **dict.fromkeys(names, "plain")})])
    else:
        shop.produce([avro(of, filled(of, number))])


def refused(shop: Shop, what: str) -> None:
    """Check that neither a run nor a preview shows a plain value, and that the table stays as it was."""
    before = shop.job().iceberg.load(shop.pipeline.table.identifier).schema().toString()
    with pytest.raises(InvalidInput, match=what):
        shop.drain()
    with pytest.raises(InvalidInput, match=what):
        preview(shop.pipeline, shop.job(), shop.registry(), count=9)
    assert shop.job().iceberg.load(shop.pipeline.table.identifier).schema().toString() == before
    assert "plain" not in str(shop.landed())


FILES: dict[str, tuple[tuple[Any, ...], str, str]] = {
    "back to a name of before": ((named(("mail", "email")), named(("email",))), "mail", "email"),
    "the first alias only": ((named(("mail", "email")), named(("contact", "email"))), "mail", "contact"),
    "a chain of aliases": (tuple(named(one) for one in CHAIN), "email", "contact"),
    "a new field with the masked name": (
        (named(("email",)), named(("mail", "email")), named(("mail",), ("email",))),
        "email",
        "mail",
    ),
    "an outer name, then an inner one": (
        (
            nested(("customer",), ("email",)),
            nested(("client", "customer"), ("email",)),
            nested(("client",), ("mail", "email")),
        ),
        "customer.email",
        "client.mail",
    ),
    "a number with another name": (
        (PROTO % "string email = 2;", PROTO % "string email_legacy = 2; string email = 3;"),
        "email",
        "email_legacy",
    ),
    "a number that is renamed": (
        (PROTO % "string email = 2;", PROTO % "string mail = 2;"),
        "email",
        "mail",
    ),
}


@pytest.mark.parametrize("write", [Append(), Upsert(key="id")])
@pytest.mark.parametrize("case", FILES)
def test_a_file_that_does_not_say_what_a_field_was(shop_of: ShopOf, write: Append | Upsert, case: str) -> None:
    schemas, path, now = FILES[case]
    own: dict[str, Any] = {"value_format": "protobuf", "record_name": "P"} if isinstance(schemas[0], str) else {}
    schema = descriptors(schemas[0]) if own else avsc(schemas[0])
    shop = shop_of(write=write, schema=(schema,), shape=Shape(mask={path: KEYED}), partitions=1, **own)
    for number, of in enumerate(schemas):
        produced(shop, of, number)
        if number < len(schemas) - 1:
            shop.drain()
    refused(shop, f"{now} was {path}, which is masked, and the schema does not say so any more. Mask {now}, too")
    shop.pipeline = replace(shop.pipeline, shape=Shape(mask={path: KEYED, now: KEYED}))
    take_masks(shop)
    assert sorted(row["id"] for row in shop.landed()) == [*range(len(schemas))]
    assert hidden("plain") in str(shop.landed())
    assert "plain" not in str(shop.landed())
    shop.assert_proven(deep=True)


@pytest.mark.parametrize("key", ["file", "registry"])
def test_a_chain_of_a_masked_key_makes_no_second_key(shop_of: ShopOf, key: str) -> None:
    own: dict[str, Any] = {"schema": (avsc(named(CHAIN[0])),)} if key == "file" else {}
    shop = shop_of(write=Upsert(key="email"), shape=Shape(mask={"email": KEYED}), partitions=1, **own)
    for number, name in enumerate(CHAIN):
        of = named(name)
        if key == "file":
            produced(shop, of, number)
        else:
            schema_id = shop.register(of)
            shop.registry_admin.set_compatibility("NONE", f"{shop.topic}-value")
            for version in (1, 2) if number == 2 else ():
                shop.registry_admin.delete_version(f"{shop.topic}-value", version)
            shop.produce([frame(schema_id, avro(of, filled(of, number)))])
        if number < 2:
            shop.drain()
    refused(shop, "(no version of the value has email|contact was email)")
    shop.pipeline = replace(shop.pipeline, write=Upsert(key="contact"))
    refused(shop, "contact was email.* Mask contact, too, or give it the alias email in its schema")
    again = named(("contact", "mail", "email"))
    if key == "file":
        shop.pipeline = redeclared(shop.pipeline, schema=(avsc(again),))
    else:
        shop.register(again)
    shop.drain()
    (row,) = shop.landed()
    assert (row["id"], row["contact"]) == (2, hidden("plain"))
    shop.assert_proven(deep=True)


def registered(shop: Shop, number: int) -> None:
    """Register a version of the chain, and produce a record of it."""
    of = named(CHAIN[number])
    schema_id = shop.register(of)
    if number == 0:
        shop.registry_admin.set_compatibility("NONE", f"{shop.topic}-value")
    shop.produce([frame(schema_id, avro(of, filled(of, number)))])


@pytest.mark.parametrize("gone", [(1,), (2,), (1, 2)])
def test_a_registry_that_does_not_say_what_a_field_was(shop_of: ShopOf, gone: tuple[int, ...]) -> None:
    shop = shop_of(shape=Shape(mask={"email": KEYED}), partitions=1)
    for number in (0, 1):
        registered(shop, number)
        shop.drain()
    registered(shop, 2)
    for version in gone:
        shop.registry_admin.delete_version(f"{shop.topic}-value", version)
    if gone == (1,):
        shop.drain()
        assert [row["contact"] for row in shop.landed()] == [hidden("plain")] * 3
    else:
        refused(shop, "contact was email")


def test_a_chain_of_aliases_runs_where_all_versions_are_known(shop_of: ShopOf) -> None:
    shop = shop_of(shape=Shape(mask={"email": KEYED}), partitions=1)
    for number in range(len(CHAIN)):
        registered(shop, number)
        shop.drain()
    assert [row["contact"] for row in shop.landed()] == [hidden("plain")] * 3


def test_swapped_names_run_if_both_have_the_same_mask(shop_of: ShopOf) -> None:
    texts = [PROTO % "string email = 2; string phone = 3;", PROTO % "string phone = 2; string email = 3;"]
    mask = {"email": KEYED, "phone": KEYED}
    own: dict[str, Any] = {"schema": (descriptors(texts[0]),), "record_name": "P", "shape": Shape(mask=mask)}
    shop = shop_of(value_format="protobuf", partitions=1, **own)
    for number, text in enumerate(texts * 2):
        produced(shop, text, number)
        shop.drain()
    assert [(row["email"], row["phone"]) for row in shop.landed()] == [(hidden("plain"), hidden("plain"))] * 4


def test_swapped_names_with_other_masks_stop(shop_of: ShopOf) -> None:
    texts = [PROTO % "string email = 2; string phone = 3;", PROTO % "string phone = 2; string email = 3;"]
    own: dict[str, Any] = {"schema": (descriptors(texts[0]),), "record_name": "P"}
    shape = Shape(mask={"email": KEYED, "phone": Redact()})
    shop = shop_of(value_format="protobuf", shape=shape, partitions=1, **own)
    produced(shop, texts[0], 0)
    shop.drain()
    produced(shop, texts[1], 1)
    said = "lands in the column email, which has values that the mask of email made. Give phone the same mask"
    refused(shop, f"phone {said}")
    shop.pipeline = replace(shop.pipeline, shape=Shape(mask={"email": KEYED, "phone": KEYED}))
    take_masks(shop)
    assert [row["id"] for row in shop.landed()] != []


@pytest.mark.parametrize("select", ["id, {} as address", "id, upper({}) as address", "id, c.{} as address"])
def test_a_column_of_select_gets_no_plain_value_of_another_field(shop_of: ShopOf, select: str) -> None:
    """A field that another schema file names without a word of what it was is a new one: the column says what it has."""
    is_nested = "c." in select
    schemas = [nested(("c",), (name,)) if is_nested else named((name,)) for name in ("email", "mail")]
    path, now = ("c.email", "c.mail") if is_nested else ("email", "mail")
    shape = Shape(select=select.format("email"), mask={path: KEYED})
    shop = shop_of(schema=(avsc(schemas[0]),), shape=shape, partitions=1)
    produced(shop, schemas[0], 0)
    shop.drain()
    produced(shop, schemas[1], 1)
    shop.pipeline = replace(shop.pipeline, shape=replace(shape, select=select.format("mail")))
    said = f"{now} lands in the column address, which has values that the mask of {path} made. Give {now} the same mask"
    refused(shop, said)
    masked = replace(shop.pipeline, shape=replace(shop.pipeline.shape, mask={path: KEYED, now: KEYED}))
    if not is_nested:
        other = shop.pipeline.shape.select.replace("address", "other")
        shop.pipeline = replace(shop.pipeline, shape=replace(shop.pipeline.shape, select=other))
        shop.drain()
        assert [row["address"] for row in shop.landed() if row["id"] == 1] == [None]
        return
    shop.pipeline = masked
    take_masks(shop)
    assert {row["address"] for row in shop.landed()} == {hidden("plain")}


LINES = {"email": "string", "phone": "string"}


def of_lines(shop: Shop, *numbers: int) -> None:
    """Produce orders with a list and a map of texts."""
    line, value = record("Line", **LINES), record("Value", **LINES)
    of = record("Order", id="long")
    of["fields"] += [
        {"name": "lines", "type": {"type": "array", "items": line}},
        {"name": "m", "type": {"type": "map", "values": value}},
    ]
    schema_id = shop.register(of)
    for number in numbers:
        one = dict.fromkeys(LINES, f"plain{number}")
        shop.produce([frame(schema_id, avro(of, {"id": number, "lines": [one], "m": {"a": one}}))])


INSIDE = ("lines[0].{}", "array_join(lines.{}, ',')", "lines.{}[0]", "map_values(m).{}[0]", "element_at(lines, 1).{}")


@pytest.mark.parametrize("made", first_short([*INSIDE]))
def test_a_column_made_of_a_list_gets_no_plain_value_of_another_field(shop_of: ShopOf, made: str) -> None:
    mask = {"lines.element.email": KEYED, "m.value.email": KEYED}
    shop = shop_of(shape=Shape(select=f"id, {made.format('email')} as address", mask=mask), partitions=1)
    of_lines(shop, 1)
    shop.drain()
    shop.pipeline = replace(shop.pipeline, shape=Shape(select=f"id, {made.format('phone')} as address", mask=mask))
    of_lines(shop, 2)
    refused(shop, "lands in the column address, which has values that the mask of")


@pytest.mark.parametrize("made", first_short([*INSIDE]))
def test_a_key_made_of_a_list_is_of_its_masked_values(shop_of: ShopOf, made: str) -> None:
    mask = {"lines.element.email": Redact(), "m.value.email": Redact()}
    select = f"id, {made.format('email')} as k"
    shop = shop_of(write=Upsert(key="k"), shape=Shape(select=select, mask=mask), partitions=1)
    of_lines(shop, 1, 2)
    with pytest.raises(InvalidInput, match="several keys"):
        shop.drain()


@pytest.mark.parametrize("select", ["*", "* except ({})"])
@pytest.mark.parametrize("is_numbered", [False, True])
def test_a_dead_letter_has_no_plain_value_of_a_renamed_field(shop_of: ShopOf, select: str, is_numbered: bool) -> None:
    """A field that is no column is known by the names and the numbers that it had."""
    schemas: list[Any] = [named(one) for one in CHAIN]
    if is_numbered:
        schemas = [PROTO % f"string {name} = 2;" for name in ("email", "mail")]
    own: dict[str, Any] = {"value_format": "protobuf", "record_name": "P"} if is_numbered else {}
    schema = descriptors(schemas[0]) if is_numbered else avsc(schemas[0])
    shop = shop_of(
        schema=(schema,),
        write=Upsert(key="id"),
        shape=Shape(mask={"email": KEYED}, where="10 / id > 0"),
        partitions=1,
        on_error=ErrorMode.DEAD_LETTER,
        max_rejected_percent=100,
        **own,
    )
    names = ("email", "mail", "contact")
    for number, of in enumerate(schemas):
        columns = select.format(names[number])
        shop.pipeline = replace(shop.pipeline, shape=replace(shop.pipeline.shape, select=columns))
        produced(shop, of, number + 1)
        produced(shop, of, 0)
        if number < len(schemas) - 1:
            shop.drain()
    with pytest.raises(InvalidInput, match=f"{names[len(schemas) - 1]} was email"):
        shop.drain()
    assert "plain" not in str(shop.dead())
    assert hidden("plain") in str(shop.dead())


def test_a_rename_in_a_version_that_does_not_land_is_known(shop_of: ShopOf) -> None:
    versions = [named(("email",), n="long"), named(("mail", "email"), n="string"), named(("contact", "mail"), n="long")]
    shop = shop_of(
        shape=Shape(mask={"email": KEYED}),
        partitions=1,
        on_error=ErrorMode.DEAD_LETTER,
        max_rejected_percent=100,
    )
    for number, of in enumerate(versions):
        schema_id = shop.register(of)
        if number == 0:
            shop.registry_admin.set_compatibility("NONE", f"{shop.topic}-value")
        shop.produce([frame(schema_id, avro(of, filled(of, number)))])
        if number < 2:
            shop.drain()
    refused(shop, "contact was email")


UNIONS: dict[str, Any] = {
    "Card": {"type": "record", "name": "Card", "fields": [{"name": "number", "type": "string"}]},
    "Bank": {"type": "record", "name": "Bank", "fields": [{"name": "number", "type": "string"}]},
}


def paid(name: str, *members: str) -> dict[str, Any]:
    """Return a schema with a field of these types."""
    pay = {"name": name, "type": ["null", *(UNIONS[one] for one in members)], "default": None}
    of = named(("email",))
    return {**of, "fields": [*of["fields"], json.loads(json.dumps(pay))]}


SHAPES = {
    "none": Shape(),
    "mask": Shape(mask={"email": KEYED}),
    "star": Shape(select="*, upper(email) as loud"),
    "list": Shape(select="id, email, pay as paid"),
    "where": Shape(where="email <> 'x'", mask={"email": Nullify()}),
}


@pytest.mark.parametrize("write", [Append(), Upsert(key="id")])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_version_that_does_not_fit_the_table_is_rejected_alone(
    shop_of: ShopOf, shape: str, write: Append | Upsert
) -> None:
    shop = shop_of(
        write=write,
        shape=SHAPES[shape],
        partitions=1,
        on_error=ErrorMode.DEAD_LETTER,
        max_rejected_percent=100,
    )
    old, new, next_one = paid("pay", "Card"), paid("pay", "Card", "Bank"), paid("payment", "Card", "Bank")
    card = {"number": "1"}

    def produce(of: dict[str, Any], number: int, **more: Any) -> None:
        schema_id = shop.register(of)
        shop.registry_admin.set_compatibility("NONE", f"{shop.topic}-value")
        shop.produce([frame(schema_id, avro(of, {"id": number, "email": "e", **more}))])

    produce(old, 1, pay=card)
    shop.drain()
    produce(new, 2, pay=("Bank", card))
    produce(old, 3, pay=card)
    found = preview(shop.pipeline, shop.job(), shop.registry(), count=9)
    assert [one.reason for one in found.rejected] == ["incompatible_schema"]
    shop.drain()
    assert sorted(row["id"] for row in shop.landed()) == [1, 3]
    assert [letter["reason"] for letter in shop.dead()] == ["incompatible_schema"]
    produce(next_one, 4, payment=("Bank", card))
    shop.drain()
    assert sorted(row["id"] for row in shop.landed()) == [1, 3, 4]
    shop.assert_proven(deep=True)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_version_that_alone_is_known_does_not_stop_the_others(shop_of: ShopOf, shape: str) -> None:
    old, new = (record("O", id="long", email="string", pay=kind) for kind in ("string", "long"))
    shop = shop_of(
        write=Upsert(key="id"),
        shape=SHAPES[shape],
        partitions=1,
        on_error=ErrorMode.DEAD_LETTER,
        max_rejected_percent=100,
    )
    first = shop.register(old)
    shop.registry_admin.set_compatibility("NONE", f"{shop.topic}-value")
    shop.produce([frame(first, avro(old, {"id": 1, "email": "e", "pay": "1"}))])
    shop.drain()
    second = shop.register(new)
    shop.registry_admin.delete_version(f"{shop.topic}-value", 1)
    shop.produce([frame(second, avro(new, {"id": 2, "email": "e", "pay": 1}))])
    shop.drain()
    shop.produce([frame(first, avro(old, {"id": 3, "email": "e", "pay": "1"}))])
    shop.drain()
    assert sorted(row["id"] for row in shop.landed()) == [1, 3]
    assert [letter["reason"] for letter in shop.dead()] == ["incompatible_schema"]


def test_an_expression_that_no_longer_fits_a_version_stops_and_names_the_field(shop_of: ShopOf) -> None:
    shop = shop_of(
        shape=Shape(select="id, pay.number as number"),
        partitions=1,
        on_error=ErrorMode.DEAD_LETTER,
        max_rejected_percent=100,
    )
    old, new = paid("pay", "Card"), paid("pay", "Card", "Bank")
    shop.produce([frame(shop.register(old), avro(old, {"id": 1, "email": "e", "pay": {"number": "1"}}))])
    shop.drain()
    shop.produce([frame(shop.register(new), avro(new, {"id": 2, "email": "e", "pay": ("Bank", {"number": "1"})}))])
    with pytest.raises(InvalidInput, match="pay.number as number does not fit the rows"):
        shop.drain()
    assert [row["id"] for row in shop.landed()] == [1]
