"""A member of a union, and a numbered field of Protobuf, has one column, whatever versions are known and in whatever order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.declaration import Debezium
from frazil.decode.protobuf.compiler import compile_proto
from frazil.envelopes.debezium import DebeziumEvents
from frazil.errors import InvalidInput
from frazil.schemas import avro, protobuf
from frazil.schemas.connect.connect_types import row_meaning
from frazil.schemas.evolution.field_ids import by_record, is_member
from frazil.schemas.evolution.merge import merge
from frazil.schemas.evolution.schema_changes import IdentifyColumn, applied
from frazil.schemas.evolution.table_mapping import Landing, landing
from frazil.schemas.iceberg import FIELD_IDS, kept_ids, row_type, schema_json
from frazil.schemas.json import json_schema
from frazil.schemas.types import Field, ListOf, MapOf, Struct, Type
from tests.schemas.row_types import STRING
from tests.support.fitting import fits


def record(name: str, *fields: tuple[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields], **more}


CARD = record("pay.Card", ("number", "string"), ("amount", "int"))
IBAN = record("pay.Iban", ("iban", "string"), ("amount", "int"))
OTHER_CARD = record("gift.Card", ("number", "string"))


def pay(of: Any) -> dict[str, Any]:
    return record("Pay", ("id", "long"), ("how", of))


def avro_row(schema: Any) -> Struct:
    return avro.row_type(avro.parse(json.dumps(schema)))


class Table:
    """A table as a catalog keeps it: its schema, and the ids of its columns."""

    def __init__(self, versions: Sequence[tuple[int, Struct]]) -> None:
        self._keep(merge(versions).type)

    def _keep(self, columns: Struct) -> None:
        self.schema = schema_json(columns)
        self.kept = kept_ids(columns, self.schema).get(FIELD_IDS)

    @property
    def columns(self) -> Struct:
        return row_type(self.schema, self.kept)

    def land(self, versions: Sequence[tuple[int, Struct]], **flags: bool) -> Landing:
        """Evolve for these versions, which are those that are known now."""
        found = landing(self.columns, versions, **flags)
        self._keep(applied(self.columns, found.changes))
        for number, version in versions:
            if number not in found.incompatible:
                assert fits(found.target, version) is None
        return found


def avro_land(table: Table, *schemas: Any) -> dict[int, str]:
    """Land these versions alone; why some are refused. Every other one has a reader."""
    found = table.land([(number, avro_row(schema)) for number, schema in enumerate(schemas)])
    for number, schema in enumerate(schemas):
        if number not in found.incompatible:
            avro.reader(avro.parse(json.dumps(schema)), found.target)
    return {number: str(problem) for number, problem in found.incompatible.items()}


def made_for(*schemas: Any) -> Table:
    return Table([(number, avro_row(schema)) for number, schema in enumerate(schemas)])


def of(table: Table, name: str = "how") -> str:
    return str(next(field.type for field in table.columns.fields if field.name == name))


def members(table: Table) -> dict[str, str]:
    (how,) = (field for field in table.columns.fields if field.name == "how")
    assert isinstance(how.type, Struct)
    return {field.ids[0]: field.name for field in how.type.fields}


PLACES: dict[str, Any] = {
    "itself": lambda union: union,
    "a list": lambda union: {"type": "array", "items": union},
    "a map": lambda union: {"type": "map", "values": union},
    "a record": lambda union: record("Inner", ("kind", union)),
    "a list of lists": lambda union: {"type": "array", "items": {"type": "array", "items": union}},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("grown", [["null", CARD, IBAN], ["null", IBAN, CARD], [CARD, "string"]], ids=str)
def test_a_union_that_grows_is_refused_where_the_column_holds_one_type(place: str, grown: Any) -> None:
    one, more = pay(PLACES[place](["null", CARD])), pay(PLACES[place](grown))
    table = made_for(one)
    before = of(table)
    for known in ([one, more], [one, more, one], [more, one]):
        refused = avro_land(table, *known)
        assert [known[number] for number in refused] == [more]
        (message,) = refused.values()
        assert message.startswith("how")
        assert "pay.Card" in message
    assert of(table) == before


@pytest.mark.parametrize("place", PLACES)
def test_a_union_that_shrinks_lands_in_the_members_column(place: str) -> None:
    two, one = pay(PLACES[place](["null", CARD, IBAN])), pay(PLACES[place](["null", CARD]))
    table = made_for(two)
    before = of(table)
    assert "member_card: struct<number: string, amount: int>" in before
    for known in ([two, one], [one], [pay(PLACES[place](CARD))], [one, two]):
        assert avro_land(table, *known) == {}
        assert of(table) == before


def test_all_versions_that_are_known_when_the_table_is_made_share_its_columns() -> None:
    one, two = pay(["null", CARD]), pay(["null", CARD, IBAN])
    for known in permutations((one, two, pay([IBAN]))):
        table = made_for(*known)
        assert members(table) == {"member_pay.Card": "member_card", "member_pay.Iban": "member_iban"}
        assert avro_land(table, *known) == {}


def test_a_record_inside_of_itself_is_a_member_at_each_level() -> None:
    one, two = (pay(record("Tree", ("v", "int"), ("next", ["null", "Tree", *more]))) for more in ((), (IBAN,)))
    table = made_for(two)
    before = of(table)
    for known in ([two, one], [one]):
        assert avro_land(table, *known) == {}
        assert of(table) == before
    assert set(avro_land(made_for(one), one, two)) == {1}


def test_the_members_of_an_envelopes_row_keep_their_columns() -> None:
    def event(row: Any, *more: Any) -> Struct:
        source = record("Source", ("connector", "string"), ("ts_ms", "long"))
        value = {**row, "name": "t.Value"}
        after = ("after", ["null", "t.Value", *more])
        return avro_row(record("t.Envelope", ("before", ["null", value]), after, ("source", source), ("op", "string")))

    envelope = DebeziumEvents(Debezium())
    two, one = (envelope.unwrapped(event(pay(union))).row for union in (["null", CARD, IBAN], ["null", CARD]))
    table = Table([(0, two)])
    assert [table.land([(0, one)]).incompatible, table.land([(0, two), (1, one)]).incompatible] == [{}, {}]
    assert set(members(table)) == {"member_pay.Card", "member_pay.Iban"}
    assert set(Table([(0, one)]).land([(0, one), (1, two)]).incompatible) == {1}
    with pytest.raises(InvalidInput):
        envelope.unwrapped(event(pay(["null", CARD]), IBAN))


def json_row(schema: Any) -> Struct:
    return row_meaning(json_schema.row_type(json_schema.parse(json.dumps(schema), {})))


def test_alternatives_of_json_keep_their_columns_or_are_refused() -> None:
    def of_properties(**properties: Any) -> dict[str, Any]:
        return {"type": "object", "properties": properties}

    null, text, card = {"type": "null"}, {"type": "string"}, of_properties(number={"type": "string"})
    iban = of_properties(iban={"type": "string"})
    one, two, mixed = (
        json_row(of_properties(how={"oneOf": alternatives}))
        for alternatives in ([null, card], [iban, null, card], [card, text])
    )
    table = Table([(0, one)])
    assert table.land([(0, one), (1, two), (2, mixed)]).incompatible.keys() == {2}
    assert table.land([(0, mixed)]).incompatible.keys() == {0}
    assert table.land([(0, two)]).incompatible == {}
    assert str(table.columns) == "struct<how: struct<number: string, iban: string>>"
    top = [json_row(schema) for schema in (card, {"oneOf": [card, text]}, {"oneOf": [card, iban]})]
    assert Table([(0, top[0])]).land(list(enumerate(top))).incompatible.keys() == {1}
    assert Table([(0, top[1])]).land([(1, top[1]), (0, top[0])]).incompatible.keys() == {0}


def test_two_types_of_one_short_name_are_two_members() -> None:
    table = made_for(pay(["null", CARD, OTHER_CARD]))
    expected = {"member_pay.Card": "member_card", "member_gift.Card": "member_gift_card"}
    assert members(table) == expected
    for known in (
        [pay(["null", OTHER_CARD, CARD])],
        [pay(["null", OTHER_CARD])],
        [pay([OTHER_CARD, "int"]), pay([CARD, "int"])],
    ):
        assert avro_land(table, *known) == {}
        assert expected.items() <= members(table).items()


def test_a_member_of_a_taken_short_name_gets_a_column_of_its_own() -> None:
    table = made_for(pay(["null", CARD, "int"]))
    assert avro_land(table, pay(["null", OTHER_CARD, "int"])) == {}
    assert members(table)["member_pay.Card"] == "member_card"
    assert members(table)["member_gift.Card"] == "member_gift_card"


def test_a_members_alias_is_the_member() -> None:
    table = made_for(pay(["null", CARD, IBAN]))
    renamed = record("CreditCard", ("number", "string"), ("amount", "int"), namespace="pay", aliases=["Card"])
    for known in ([pay(["null", CARD, IBAN]), pay([IBAN, renamed])], [pay(["null", renamed])], [pay([renamed, IBAN])]):
        assert avro_land(table, *known) == {}
        assert set(members(table).values()) == {"member_card", "member_iban"}


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [
        (CARD, IBAN, True),
        (CARD, {**IBAN, "aliases": ["Card"]}, False),
        (record("a.Card", ("number", "string")), record("b.Card", ("number", "string")), False),
        (record("ConnectDefault2", ("a", "int")), record("ConnectDefault3", ("a", "int")), False),
        ({"type": "enum", "name": "A", "symbols": ["X"]}, {"type": "enum", "name": "B", "symbols": ["X"]}, True),
        ({"type": "enum", "name": "A", "symbols": ["X"]}, "string", False),
        ("int", "long", False),
    ],
)
def test_a_type_alone_becomes_another_one_only_by_its_name_or_an_alias(first: Any, second: Any, refused: bool) -> None:
    table = made_for(pay(["null", first]))
    assert bool(avro_land(table, pay(["null", first]), pay(["null", second]))) is refused


@pytest.mark.parametrize(
    ("wide", "narrow", "member"),
    [
        (["null", "int", "string"], ["null", "int"], "member_int"),
        (["null", "long", "double"], ["long"], "member_long"),
        (["int", "long", "string"], ["int", "long"], "member_long"),
        (["bytes", {"type": "fixed", "name": "F", "size": 2}], [{"type": "fixed", "name": "F", "size": 2}], "member_f"),
        ([{"type": "enum", "name": "E", "symbols": ["X"]}, "string"], ["null", "string"], "member_string"),
        ([{"type": "array", "items": "int"}, "int"], [{"type": "array", "items": "int"}], "member_array"),
    ],
)
def test_scalars_lists_and_named_types_are_members_as_well(wide: Any, narrow: Any, member: str) -> None:
    table = made_for(pay(wide))
    before = of(table)
    assert avro_land(table, pay(narrow)) == {}
    assert of(table) == before
    assert member in members(table).values()
    table = made_for(pay(narrow))
    assert set(avro_land(table, pay(narrow), pay(wide))) == {1}


def test_a_record_of_fields_that_are_called_as_members_is_no_union() -> None:
    odd = pay(["null", record("Odd", ("member_int", "int"), ("member_string", "string"))])
    table = made_for(odd)
    assert set(avro_land(table, odd, pay(["null", "int", "string"]))) == {1}


def test_a_record_is_not_the_row_in_one_version_and_a_member_in_another() -> None:
    for first, second in ((CARD, [CARD, IBAN]), ([CARD, IBAN], CARD), (CARD, ["null", CARD])):
        assert set(avro_land(made_for(first), first, second)) == {1}
    assert avro_land(made_for(CARD), CARD, "string") == {}


NAMED = [CARD, IBAN, OTHER_CARD, "int", "long", "string", {"type": "array", "items": "int"}]
UNIONS = st.lists(st.sampled_from([*NAMED, "null"]), min_size=1, max_size=4, unique_by=str).filter(
    lambda u: u != ["null"]
)


def avro_places(of: Type, path: str) -> Iterable[tuple[str, str]]:
    """The column of each type of a writer: of its values, or of its fields."""
    if isinstance(of, Struct) and any(map(is_member, of.fields)):
        for field in of.fields:
            yield field.ids[0].removeprefix("member_"), f"{path}.{field.name}"


@settings(max_examples=60, deadline=None)
@given(st.lists(UNIONS, min_size=1, max_size=4), st.data())
def test_any_members_values_are_in_one_column_for_all_versions(unions: list[Any], data: st.DataObject) -> None:
    """Each version lands, or is refused; what is known may differ from run to run, as the order in which it is met."""
    schemas = [pay(union) for union in unions]
    table = made_for(*data.draw(st.lists(st.sampled_from(schemas), min_size=1, max_size=2)))
    places: dict[str, str] = {}
    for _ in range(3):
        known = data.draw(st.lists(st.sampled_from(schemas), min_size=1))
        found = table.land([(number, avro_row(schema)) for number, schema in enumerate(known)])
        (how,) = (field for field in found.target.fields if field.name == "how")
        for number, schema in enumerate(known):
            if number in found.incompatible:
                continue
            avro.reader(avro.parse(json.dumps(schema)), found.target)
            union = [branch for branch in schema["fields"][1]["type"] if branch != "null"]
            now = dict(avro_places(how.type, "how"))
            names = [branch if isinstance(branch, str) else branch.get("name", "array") for branch in union]
            assert now or len(names) == 1 or {*names} <= {"int", "long"}
            for name in names:
                place = now.get(name, "how") if now else "how"
                assert places.setdefault(name, place) == place
                assert now == {} or name in now
    alone = [name for name, place in places.items() if place == "how"]
    records = {branch["name"] for branch in NAMED if isinstance(branch, dict) and "name" in branch}
    # An int becomes a long. A record may have another name in another version, as where no union is.
    assert len({"record" if name in records else name for name in alone} - {"long"}) <= 1
    assert len(set(places.values())) + max(0, len(alone) - 1) == len(places)


# Protobuf


@cache
def proto_row(body: str, rest: str = "", message: str = "R", *, is_key: bool = False) -> Struct:
    schema = compile_proto(f'syntax = "proto3"; package p; message {message} {{ {body} }} {rest}')
    return protobuf.row_type(schema, f"p.{message}", is_key=is_key)


def proto_land(table: Table, *rows: Struct, **flags: bool) -> dict[int, dict[int, str]]:
    """Land these versions alone; of each that lands, the column of each number, by its place."""
    found = table.land(list(enumerate(rows)), **flags)
    return {at: columns_by_number(found.target, row) for at, row in enumerate(rows) if at not in found.incompatible}


def columns_by_number(target: Struct, row: Struct) -> dict[int, str]:
    from frazil.schemas.evolution.merge import same_field

    found = {int(field.ids[0].split(":")[1]): same_field(field, target.fields) for field in row.fields}
    return {number: column.name for number, column in found.items() if column is not None}


FIRST = proto_row("int64 id = 1; string order_number = 2;")


def test_a_field_of_another_name_keeps_its_column() -> None:
    renamed = proto_row("int64 id = 1; string order_no = 2;")
    for known in ([FIRST, renamed], [renamed], [renamed, FIRST]):
        table = Table([(0, FIRST)])
        before = str(table.columns)
        assert {columns[2] for columns in proto_land(table, *known).values()} == {"order_number"}
        assert str(table.columns) == before
        assert all(columns[2] == "order_number" for columns in proto_land(table, *known, may_add=False).values())


def test_a_field_of_another_name_keeps_its_column_when_the_message_gets_another_name_later() -> None:
    renamed = proto_row("int64 number = 1; string order_no = 2;")
    moved = proto_row("int64 number = 1; string order_no = 2;", message="S")
    table = Table([(0, FIRST)])
    (*_, of_moved) = proto_land(table, FIRST, renamed, moved).values()
    assert of_moved == {1: "id", 2: "order_number"}


@pytest.mark.parametrize(
    ("body", "column"),
    [
        ("int64 id = 1; Status order_no = 2;", "order_no"),
        ("int64 id = 1; int32 order_no = 2;", "order_no"),
        ("int64 id = 1; repeated string order_no = 2;", "order_no"),
        ("int64 id = 1; string note = 2;", "order_number"),
        ("int64 id = 1; string order_number = 3;", "order_number_"),
    ],
)
def test_a_number_of_another_type_or_another_number_is_another_column(body: str, column: str) -> None:
    table = Table([(0, FIRST)])
    version = proto_row(body, "enum Status { OPEN = 0; }")
    number = 3 if "= 3" in body else 2
    for known in ([FIRST, version], [version], [FIRST, proto_row("int64 id = 1;"), version]):
        assert proto_land(table, *known)[len(known) - 1][number].startswith(column)
    assert proto_land(table, FIRST)[0] == {1: "id", 2: "order_number"}


def test_a_field_that_keeps_its_name_and_changes_its_type_is_refused() -> None:
    table = Table([(0, FIRST)])
    assert list(proto_land(table, FIRST, proto_row("int64 id = 1; int32 order_number = 2;"))) == [0]
    assert proto_land(table, proto_row("int64 id = 1; int32 order_number = 2;")) == {}


INNER = {
    "a message": "Line x = 1;",
    "a list": "repeated Line x = 1;",
    "a map": "map<string, Line> x = 1;",
    "a oneof": "oneof o { Line x = 1; string y = 2; }",
}


@pytest.mark.parametrize("body", INNER.values(), ids=INNER)
def test_fields_inside_of_fields_keep_their_columns(body: str) -> None:
    one = proto_row(body, "message Line { string sku = 1; Part part = 2; } message Part { int32 n = 1; }")
    two = proto_row(
        body.replace("Line", "Row"),
        "message Row { Part piece = 2; string article = 1; } message Part { int64 number = 1; }",
    )
    table = Table([(0, one)])
    wider = str(table.columns).replace("n: int", "n: long")
    for known in ([one, two], [two]):
        assert len(proto_land(table, *known)) == len(known)
        assert str(table.columns) == wider


def test_a_map_of_another_name_keeps_its_column() -> None:
    table = Table(
        [(0, proto_row("map<string, string> a = 1; map<string, Line> b = 2;", "message Line { int32 n = 1; }"))]
    )
    before = str(table.columns)
    two = proto_row("map<string, string> c = 1; map<string, Line> d = 2;", "message Line { int32 n = 1; }")
    assert len(proto_land(table, two)) == 1
    assert str(table.columns) == before


def test_a_message_field_of_another_name_and_another_message_is_another_column() -> None:
    lines = "message Line { string sku = 1; } message Note { string text = 1; }"
    table = Table([(0, proto_row("Line line = 1;", lines))])
    proto_land(table, proto_row("Note note = 1;", lines))
    assert str(table.columns) == "struct<line: struct<sku: string>, note: struct<text: string>>"


def test_another_message_is_matched_by_names() -> None:
    table = Table([(0, proto_row("string a = 1; string b = 2;"))])
    other = proto_row("string b = 1; string a = 2;", message="S")
    assert proto_land(table, other) == {0: {1: "b", 2: "a"}}
    later = proto_row("string bee = 1; string a = 2;", message="S")
    assert proto_land(table, later) == {0: {1: "b", 2: "a"}}
    assert proto_land(table, proto_row("string ay = 1; string b = 2;")) == {0: {1: "a", 2: "b"}}


def test_a_key_is_not_the_value_of_the_same_message() -> None:
    key, value = proto_row("string customer = 1;", is_key=True), proto_row("string id = 1; string customer = 2;")
    assert [field.name for field in merge([(-1, key), (1, value)]).type.fields] == ["customer", "id"]


def test_a_further_field_of_a_column_is_a_change_that_says_so() -> None:
    table = Table([(0, FIRST)])
    found = table.land([(1, proto_row("string order_number = 1;", message="S"))])
    identified = [str(change) for change in found.changes if isinstance(change, IdentifyColumn)]
    assert identified == ["column order_number is the field p.S:1:string"]
    assert table.land([(1, proto_row("string order_number = 1;", message="S"))]).changes == ()


NAMES = ["a", "b", "c"]
KINDS = ["int32", "int64", "string", "repeated string"]


@st.composite
def messages(draw: st.DrawFn) -> Struct:
    numbers = draw(st.lists(st.sampled_from([1, 2, 3]), min_size=1, unique=True))
    names = draw(st.permutations(NAMES))
    body = " ".join(f"{draw(st.sampled_from(KINDS))} {name} = {n};" for n, name in zip(numbers, names, strict=False))
    return proto_row(body)


@settings(max_examples=60, deadline=None)
@given(st.lists(messages(), min_size=1, max_size=4), st.data())
def test_any_numbers_values_are_in_one_column_for_all_versions(rows: list[Struct], data: st.DataObject) -> None:
    table = Table([(0, rows[0])])
    places: dict[str, str] = {}
    for _ in range(3):
        known = data.draw(st.lists(st.sampled_from(rows), min_size=1))
        found = table.land(list(enumerate(known)))
        for at, row in enumerate(known):
            if at in found.incompatible:
                continue
            columns = columns_by_number(found.target, row)
            assert len(columns) == len(row.fields)
            for field in row.fields:
                column = columns[int(field.ids[0].split(":")[1])]
                assert places.setdefault(field.ids[0], column) == column
    assert len(set(places.values())) == len(places)


def test_ids_inside_of_lists_and_maps_are_kept() -> None:
    row = Struct((Field("a", ListOf(MapOf(STRING, Struct((Field("b", STRING, ids=("R:1:string",)),))))),))
    schema = schema_json(row)
    (a,) = row_type(schema, kept_ids(row, schema)[FIELD_IDS]).fields
    assert isinstance(a.type, ListOf)
    assert isinstance(a.type.element, MapOf)
    assert isinstance(a.type.element.value, Struct)
    assert a.type.element.value.fields[0].ids == ("R:1:string",)


def records_of(*versions: tuple[int, dict[str, Any]]) -> list[list[str]]:
    """Return the documentation of the versions of each record; each is in a schema of an id."""
    return [
        [str(row.fields[0].doc) for row in one] for one in by_record([(of, avro_row(each)) for of, each in versions])
    ]


def version(place: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": "id", "type": "long", "doc": place}], **more}


def test_versions_of_one_record_are_found_by_its_names() -> None:
    assert records_of((1, version("1", "s.A")), (2, version("2", "s.B")), (3, version("3", "s.A"))) == [
        ["1", "3"],
        ["2"],
    ]
    renamed = version("2", "B", namespace="s", aliases=["A"])
    assert records_of((1, version("1", "s.A")), (2, renamed), (3, version("3", "s.B"))) == [["1", "2", "3"]]
    assert records_of((1, version("1", "s.B")), (2, version("2", "s.A")), (3, renamed)) == [["1", "2", "2"]]
    assert records_of((1, version("1", "s.A")), (2, version("2", "s.v2.A")), (4, version("3", "A"))) == [
        ["1", "2", "3"]
    ]


def test_records_of_one_name_in_two_namespaces_are_two_if_both_go_on() -> None:
    one, two = version("1", "s.A"), version("2", "t.A")
    assert records_of((1, one), (2, two), (3, one)) == [["1", "1"], ["2"]]
    assert records_of((1, one), (2, two), (3, one), (4, two), (5, version("3", "u.A"))) == [
        ["1", "1"],
        ["2", "2"],
        ["3"],
    ]
    assert records_of((1, one), (1, two)) == [["1"], ["2"]], "both are in one schema"
    tables = [version(table, f"db.{table}.Value") for table in ("orders", "items")]
    assert records_of(*enumerate(tables)) == [["orders"], ["items"]]
