"""docs/schemas.md is true: each row of its tables is run, and nothing that the code maps is missing from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from pyspark.sql import SparkSession

from frazil.schemas.avro.parser import DEBEZIUM as SEMANTIC
from frazil.schemas.avro.parser import LOGICAL
from frazil.schemas.avro.schema import PRIMITIVES
from frazil.schemas.connect.connect_types import DECIMAL, NAMED, VARIABLE_SCALE_DECIMAL
from frazil.schemas.json.json_schema import _FORMATS, _INTEGERS
from frazil.schemas.json.keywords import TYPES
from frazil.schemas.protobuf import _JSON, WELL_KNOWN, FieldKind
from tests.schemas import mapping
from tests.schemas.mapping import Row

SECTIONS = ("Avro", "Debezium", "Debezium in JSON Schema", "JSON Schema", "Protobuf")
AVRO, DEBEZIUM, DEBEZIUM_JSON, JSON, PROTOBUF = (mapping.rows(section) for section in SECTIONS)
COLUMNS = [
    *(("Avro", row, mapping.avro_row) for row in AVRO),
    *(("Debezium", row, mapping.debezium_row) for row in DEBEZIUM),
    *(("Debezium in JSON Schema", row, mapping.debezium_json_row) for row in DEBEZIUM_JSON),
    *(("Debezium in JSON with schemas", row, mapping.connect_row) for row in DEBEZIUM_JSON),
    *(("JSON Schema", row, mapping.json_row) for row in JSON),
    *(("Protobuf", row, mapping.protobuf_row) for row in PROTOBUF),
]


def schemas_of(rows: list[Row]) -> str:
    return "\n".join(row.schema for row in rows)


@pytest.mark.parametrize(("section", "row", "row_type"), COLUMNS, ids=[f"{s}: {r.what}" for s, r, _ in COLUMNS])
def test_a_field_has_the_column_that_the_page_says(section: str, row: Row, row_type: object) -> None:
    assert callable(row_type)
    assert mapping.column(row_type(row.schema)) == row.column


VALUES: dict[str, tuple[list[Row], Callable[..., list[str]]]] = {
    "Avro": (AVRO, partial(mapping.avro_values, given=AVRO)),
    "Debezium": (DEBEZIUM, partial(mapping.avro_values, given=DEBEZIUM, connect_types=True)),
    "Debezium in JSON Schema": (DEBEZIUM_JSON, partial(mapping.json_values, given=DEBEZIUM_JSON, connect_types=True)),
    "Debezium in JSON with schemas": (DEBEZIUM_JSON, partial(mapping.connect_values, given=DEBEZIUM_JSON)),
    "JSON Schema": (JSON, partial(mapping.json_values, given=JSON)),
    "Protobuf": (PROTOBUF, lambda _, **how: mapping.protobuf_values(PROTOBUF, **how)),
}


@pytest.mark.spark
@pytest.mark.parametrize(
    "section", [pytest.param(s, marks=() if s in ("Avro", "Debezium") else pytest.mark.long) for s in VALUES]
)
def test_examples_land_as_the_page_says(spark: SparkSession, section: str) -> None:
    rows, values = VALUES[section]
    wanted = {row.what: row.lands for row in rows}
    assert {row.what: value for row, value in zip(rows, values(spark), strict=True)} == wanted
    assert len(wanted) == len(rows)


CUT = {  # values that land as another one, which is no key: cut to microseconds, or text that was no text
    "Avro": set(),
    "Debezium": {"the same, nanoseconds: cut to microseconds", "a nanosecond before 1970"},
    "Debezium in JSON with schemas": {"the same, nanoseconds: cut to microseconds", "a nanosecond before 1970"},
    "JSON Schema": {
        "format date-time, beyond microseconds: cut",
        "a number in a column of strings",
        "a number that is not finite in a column of strings",
        "an object in a column of strings",
    },
    "Protobuf": {row.what for row in PROTOBUF if "123456789" in row.written},
}


@pytest.mark.spark
@pytest.mark.parametrize(
    "section", [pytest.param(s, marks=() if s in ("Debezium", "Protobuf") else pytest.mark.long) for s in CUT]
)
def test_an_example_in_a_key_is_the_value_or_is_rejected_as_there(spark: SparkSession, section: str) -> None:
    rows, values = VALUES[section]
    wanted = {row.what: mapping.REJECTED if row.what in CUT[section] else row.lands for row in rows}
    assert CUT[section] <= set(wanted)
    assert {row.what: value for row, value in zip(rows, values(spark, is_key=True), strict=True)} == wanted


def test_every_type_of_debezium_is_on_the_page() -> None:
    names = [*(name for _, name in SEMANTIC), VARIABLE_SCALE_DECIMAL]
    assert [name for name in names if f'"connect.name": "{name}"' not in schemas_of(DEBEZIUM)] == []
    named = [*NAMED, VARIABLE_SCALE_DECIMAL, DECIMAL]
    assert [name for name in named if f'"title": "{name}"' not in schemas_of(DEBEZIUM_JSON)] == []
    in_avro = {row.schema.partition('"connect.name": "')[2].partition('"')[0] for row in DEBEZIUM}
    assert {name for name in in_avro if name not in schemas_of(DEBEZIUM_JSON)} == set()
    (day,) = [row for row in DEBEZIUM_JSON if row.what.startswith("date: days")]
    assert mapping.column(mapping.json_row(day.schema)) == "int"
    (date,) = [row for row in DEBEZIUM if row.what.startswith("date: days")]
    assert mapping.column(mapping.avro_row(date.schema)) == "int"  # a topic without an envelope keeps its columns


def test_every_line_of_a_table_is_a_row_that_is_run() -> None:
    texts = [file.read_text("utf-8") for file in (mapping.PAGE, mapping.EXAMPLES)]
    lines = [line for text in texts for line in text.splitlines() if line.startswith("| ")]
    heads = [line for line in lines if line.startswith("| what |")]
    assert [text.count("| what |") for text in texts] == [len(SECTIONS) - 1, len(SECTIONS)]
    assert len(lines) - len(heads) == sum(map(len, (AVRO, DEBEZIUM, DEBEZIUM_JSON, JSON, PROTOBUF)))


def test_a_named_type_has_the_same_column_in_avro_and_in_json_schema() -> None:
    """The page has a table of Avro alone."""
    for name in [*(name for _, name in SEMANTIC), VARIABLE_SCALE_DECIMAL, DECIMAL]:
        avro = {row.column for row in DEBEZIUM if f'"connect.name": "{name}"' in row.schema and row.what[:5] != "array"}
        named = (row for row in DEBEZIUM_JSON if f'"title": "{name}"' in row.schema and row.what[:5] != "array")
        assert avro
        assert avro <= {row.column for row in named}, name


def test_every_type_of_avro_is_on_the_page() -> None:
    logical = {name for names in LOGICAL.values() for name in names} | {"decimal", "duration"}
    kinds = {"array", "map", "record", "enum", "fixed"}
    missing = [name for name in (PRIMITIVES | logical | kinds) if f'"{name}"' not in schemas_of(AVRO)]
    assert missing == []


def test_every_type_and_format_of_json_schema_is_on_the_page() -> None:
    assert [name for name in (*TYPES, *_FORMATS) if f'"{name}"' not in schemas_of(JSON)] == []
    assert any(f'"{name}"' in schemas_of(JSON) for name in _INTEGERS)


def test_every_type_of_protobuf_is_on_the_page() -> None:
    named = {FieldKind.MESSAGE: "Point", FieldKind.ENUM: "Colour"}
    kinds = [named.get(kind, kind.value) for kind in FieldKind if kind is not FieldKind.GROUP]
    assert [name for name in (*kinds, *WELL_KNOWN, *_JSON) if f"{name} x" not in schemas_of(PROTOBUF)] == []
