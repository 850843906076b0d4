from __future__ import annotations

from frazil.cli.pipelines.check import _row
from frazil.declaration import Json, Pipeline, Table, Topic
from frazil.decode.writers.topic_writers import topic_rows
from frazil.schemas.iceberg import row_type, schema_json
from frazil.schemas.json_columns import has_variants, variant_columns, with_texts, with_variants
from frazil.schemas.types import Field, Kind, ListOf, MapOf, Primitive, Struct

TEXT = Primitive(Kind.STRING)
ROW = Struct(
    (
        Field("plain", TEXT),
        Field("x", TEXT, as_json=True),
        Field("s", Struct((Field("inner", TEXT, as_json=True), Field("n", TEXT)))),
        Field("items", ListOf(Struct((Field("x", TEXT, as_json=True),)), element_required=True)),
        Field("names", MapOf(TEXT, Struct((Field("x", TEXT, as_json=True),)))),
    )
)


def test_json_text_becomes_variants_at_all_levels_and_text_again() -> None:
    made = with_variants(ROW)
    assert str(made) == (
        "struct<plain: string, x: variant, s: struct<inner: variant, n: string>, items: list<struct<x: variant>>, "
        "names: map<string, struct<x: variant>>>"
    )
    assert with_texts(made) == ROW
    assert (has_variants(made), has_variants(ROW)) == (True, False)
    assert variant_columns(made) == ("x", "s.inner")


def test_a_tables_schema_has_variants() -> None:
    made = with_variants(ROW)
    assert str(row_type(schema_json(made))) == str(made)
    assert with_texts(row_type(schema_json(made))).fields[1].as_json


def test_commands_that_land_nothing_know_the_variants_too() -> None:
    topic = Topic("t", value=Json(columns=("id long", "extra json"), unknown_fields="keep"))
    table = Table("a.b", format_version=3, json_columns="variant")
    row = _row(Pipeline(topic=topic, table=table))
    assert row is not None
    assert {field.name: str(field.type) for field in row.fields} == {
        "id": "long",
        "extra": "variant",
        "_unknown": "variant",
    }
    ((_, row),) = topic_rows(Pipeline(topic=topic, table=table), None).versions
    assert variant_columns(row) == ("extra", "_unknown")
    ((_, row),) = topic_rows(Pipeline(topic=topic, table=Table("a.b")), None).versions
    assert variant_columns(row) == ()
