"""Declared columns: their notation, and which topics have them."""

import pytest

from frazil.declaration import Json, Pipeline, Table, Topic, Upsert
from frazil.declaration.checks.column_notation import NAMED, PLAIN, Column, ColumnType, column
from frazil.declaration.checks.problems import InvalidDeclaration
from frazil.schemas.connect import connect_types
from frazil.schemas.declared_columns import declared_type
from tests.declaration.problems_of import problems_of
from tests.support.topics import topic_of


@pytest.mark.parametrize(
    ("text", "name", "of"),
    [
        ("id long", "id", "long"),
        ("  id\tlong ", "id", "long"),
        ("`Order No.` string", "Order No.", "string"),
        ("`a``b` string", "a`b", "string"),
        ("größe double", "größe", "double"),
        ("long long", "long", "long"),
        ("price decimal(10,2)", "price", "decimal(10, 2)"),
        ("tags list<string>", "tags", "list<string>"),
        ("stock map<string, long>", "stock", "map<string, long>"),
        ("place struct<x: double, `y z`:list<int>>", "place", "struct<x: double, y z: list<int>>"),
        ("rows list<list<struct<a: map<string, decimal(38, 38)>>>>", "rows", "list<list<struct<a: map<string, decimal(38, 38)>>>>"),
        ("extra json", "extra", "string"),
        ("at io.debezium.time.MicroTimestamp", "at", "timestamp"),
        ("days list<io.debezium.time.Date>", "days", "list<date>"),
        ("n io.debezium.data.VariableScaleDecimal", "n", "string"),
        ("at org.apache.kafka.connect.data.Timestamp", "at", "timestamptz"),
    ],
)  # fmt: skip
def test_a_column_is_a_name_and_a_type(text, name, of):
    (field,) = connect_types.row_meaning(declared_type([text])).fields
    assert (field.name, str(field.type)) == (name, of)
    assert field.as_json is text.endswith("json")


def test_every_plain_type_and_every_name_of_a_connector_is_one():
    assert [str(field.type) for field in declared_type(f"c {name}" for name in PLAIN).fields] == [*PLAIN]
    assert {*NAMED} == {*connect_types.NAMED, connect_types.VARIABLE_SCALE_DECIMAL}
    assert column("c decimal(1, 0)") == Column("c", ColumnType("decimal", (1, 0)))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "ends where a column's name belongs"),
        ("id", "ends where a type belongs"),
        ("id bigint", "'bigint' is no type"),
        ("id: long", "':' is no type"),
        ("id long not null", "not null is written required"),
    ("id long required required", "'required' follows the type"),
    ("id required", "'required' is no type"),
    ("id struct<a: long required>", "'required' is where a > belongs"),
        ("order-id long", "'-id long' is neither a name nor a type"),
        ("a.b long", "put a name with other characters in backticks"),
        ("`` long", "neither a name nor a type"),
        ("1 long", "'1' is not a column's name"),
        ("p decimal", "ends where a ( belongs"),
        ("p decimal(10)", "1 parts are between ( and ), where 2 belong"),
        ("p decimal(39, 2)", "1 to 38 digits"),
        ("p decimal(2, 3)", "1 to 38 digits"),
        ("p decimal(a, 2)", "'a' is not a number of digits"),
        ("l list", "ends where a < belongs"),
        ("l list<int", "ends where a > belongs"),
        ("l list<int, int>", "2 parts are between < and >, where 1 belong"),
        ("l list<json>", "'json' is no type of a part of a column"),
        ("m map<int, int>", "a key of a JSON object is a string"),
        ("s struct<>", "'>' is not a field's name"),
        ("s struct<a int>", "'int' is where a : belongs"),
        ("s struct<a: int, a: long>", "declared twice"),
        ("s " + "list<" * 22 + "int" + ">" * 22, "more than 20 levels"),
        ("d org.apache.kafka.connect.data.Decimal", "is no type"),
    ],
)  # fmt: skip
def test_a_text_that_is_no_column_is_refused(text, what):
    with pytest.raises(InvalidDeclaration) as refused:
        column(text)
    assert what in refused.value.problems[0].what
    assert "id long" in refused.value.problems[0].do


def pipeline(**declared):
    topic = {"value_format": "json", "columns": ("id long", "name string"), **declared.pop("topic", {})}
    return Pipeline(
        topic=topic_of("orders", **topic), table=Table("shop.orders", **declared.pop("table", {})), **declared
    )


def test_columns_are_those_of_json():
    for of in ("text", "bytes", "avro"):
        found = problems_of(lambda of=of: topic_of("orders", value_format=of, columns=("id long",)))
        assert list(found) == [f"{of}.columns"]
    assert Topic("orders", value="connect_json", key="connect_json").key.has_schemas_inside
    assert list(problems_of(lambda: Topic("orders", value=Json(columns=())))) == ["json.columns"]
    found = problems_of(lambda: Topic("orders", value=Json(columns=("id long", "a b c", "id int"))))
    assert list(found) == ["json.columns[1]", "json.columns[2]"]


def test_declared_columns_may_be_a_key_and_a_partition():
    made = pipeline(write=Upsert(key="id"), table={"partition_by": ("bucket(4, id)",), "sort_by": ("name",)})
    assert made.write == Upsert(key=("id",))
    found = problems_of(
        lambda: pipeline(topic={"columns": None}, write=Upsert(key="id"), table={"partition_by": ("id",)})
    )
    assert list(found) == ["pipeline.write.key[0]", "pipeline.table.partition_by[0]"]
    inside = {"value_format": "connect_json", "columns": None, "key_format": "connect_json"}
    made = pipeline(topic=inside, write=Upsert(key="id"), table={"partition_by": ("bucket(4, id)",)})
    assert made.topic.value.has_schemas_inside
    found = problems_of(lambda: pipeline(topic=inside, table={"partition_by": ("_kafka_key",)}))
    assert "a struct" in found["pipeline.table.partition_by[0]"]
    keyed = {"key_format": "json", "key_columns": ("id long",)}
    assert pipeline(topic=keyed, write=Upsert()).write == Upsert()
    assert list(problems_of(lambda: pipeline(topic={"key_format": "json"}, write=Upsert()))) == ["pipeline.topic.key"]
    found = problems_of(lambda: pipeline(topic=keyed, table={"partition_by": ("_kafka_key",)}))
    assert "a struct" in found["pipeline.table.partition_by[0]"]
