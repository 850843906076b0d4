"""The key's column: its type in a new table, and its changes in one that stands, with the paths that they have there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.declaration import MetadataColumns, Topic
from frazil.decode.keys.key_column import Keys, check_bytes
from frazil.decode.keys.row_key import row_key
from frazil.errors import IncompatibleSchema, InvalidInput
from frazil.schemas.evolution.schema_changes import AddColumn, WidenColumn
from frazil.schemas.metadata import metadata_fields
from frazil.schemas.types import Field, Kind, Primitive, Struct, Type
from tests.support.fake_registry import FakeRegistry

INT, LONG, STRING, BINARY = (Primitive(kind) for kind in (Kind.INT, Kind.LONG, Kind.STRING, Kind.BINARY))
ALL = {"may_add": True, "may_widen": True}


def record(*fields: tuple[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "K", "fields": [{"name": n, "type": t} for n, t in fields]})


def keys(*versions: str, layout: MetadataColumns = MetadataColumns.FLAT, key_format: str = "avro") -> Keys:
    registry = FakeRegistry()
    for version in versions:
        registry.register("orders-key", version)
    topic = Topic("orders", value="avro", key=key_format)
    made = Keys(topic, registry, layout)  # type: ignore[arg-type]
    made.writers.refresh()
    return made


def table(key: Type | None, layout: MetadataColumns = MetadataColumns.FLAT) -> Struct:
    return Struct((Field("id", INT), *metadata_fields(struct=layout is MetadataColumns.STRUCT, key=key)))


@pytest.mark.parametrize(
    ("versions", "expected"),
    [(['"long"'], "long"), ([record(("Id", "int"))], "struct<id: int>"), ([record(("a", "int")), record(("a", "long"))], "struct<a: long>")],
)  # fmt: skip
def test_the_column_of_a_new_table_holds_all_versions(versions: list[str], expected: str) -> None:
    assert str(keys(*versions).type) == expected


@pytest.mark.parametrize(
    ("layout", "root"), [(MetadataColumns.FLAT, ("_kafka_key",)), (MetadataColumns.STRUCT, ("_kafka", "key"))]
)
def test_changes_have_the_paths_of_the_table(layout: MetadataColumns, root: tuple[str, ...]) -> None:
    found = keys(record(("a", "int")), record(("a", "long"), ("b", "string")), layout=layout)
    made = found.landing(table(Struct((Field("a", INT),)), layout), **ALL).changes
    assert set(made) == {WidenColumn((*root, "a"), INT, LONG), AddColumn((*root, "b"), STRING)}
    (widened,) = keys('"int"', '"long"', layout=layout).landing(table(INT, layout), **ALL).changes
    assert widened == WidenColumn(root, INT, LONG)


def test_a_version_of_the_other_shape_does_not_fit() -> None:
    found = keys(record(("a", "int")), '"string"').landing(table(Struct((Field("a", INT),))), **ALL)
    assert list(found.incompatible) == [2]
    assert "_kafka_key" in str(found.incompatible[2])


@pytest.mark.parametrize(
    ("column", "version"), [(BINARY, '"long"'), (BINARY, record(("a", "int"))), (Struct((Field("a", INT),)), '"long"')]
)
def test_a_column_that_was_made_for_other_keys_is_refused(column: Type, version: str) -> None:
    with pytest.raises(IncompatibleSchema, match="^_kafka_key"):
        keys(version).landing(table(column), **ALL)


def test_text_does_not_land_in_bytes_nor_bytes_in_text() -> None:
    with pytest.raises(IncompatibleSchema, match="^_kafka_key"):
        keys(key_format="text").landing(table(BINARY), **ALL)
    for layout in MetadataColumns:
        check_bytes(table(None, layout), layout)
        with pytest.raises(IncompatibleSchema, match="bytes do not land in string"):
            check_bytes(table(STRING, layout), layout)


OWN_SCALE = {"type": "bytes", "logicalType": "big-decimal"}


@pytest.mark.parametrize("version", [json.dumps(OWN_SCALE), record(("id", "int"), ("price", OWN_SCALE))])
def test_a_number_with_its_own_scale_is_no_key(version: str) -> None:
    """Equal numbers of different scales differ in bytes."""
    made = keys(version)
    single = Field("_kafka_key", made.type) if made.single is None else made.single
    with pytest.raises(InvalidInput, match="numbers that each have a scale of their own"):
        row_key(made.row, Struct(()), single, None if made.is_single_value else made.row)
