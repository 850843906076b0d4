"""All text of a row is found, wherever it is."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.decode.spark_types import spark_struct
from frazil.decode.values.leaves import texts
from frazil.schemas.types import Field, Kind, ListOf, MapOf, Primitive, Struct, Type

pytestmark = pytest.mark.spark
STRING, LONG = Primitive(Kind.STRING), Primitive(Kind.LONG)
INNER = Struct((Field("s", STRING), Field("n", LONG), Field("t", ListOf(STRING))))


CASES: list[tuple[Type, Any, str | None]] = [
    (STRING, "a", "a"),
    (STRING, None, ""),
    (LONG, 1, None),
    (INNER, ("a", 1, ["b", None]), "a,b"),
    (INNER, None, ""),
    (ListOf(STRING), ["a", None, "b"], "a,b"),
    (ListOf(LONG), [1], None),
    (ListOf(INNER), [("a", 1, ["b"]), None, ("c", 2, None)], "a,c,b"),
    (ListOf(ListOf(STRING)), [["a"], None, ["b", "c"]], "a,b,c"),
    (MapOf(STRING, LONG), {"a": 1}, "a"),
    (MapOf(STRING, INNER), {"k": ("a", 1, ["b"])}, "k,a,b"),
    (ListOf(MapOf(STRING, STRING)), [{"a": "b"}, None], "a,b"),
    (MapOf(STRING, ListOf(MapOf(STRING, LONG))), {"a": [{"b": 1}]}, "a,b"),
]


def test_text_is_found(spark: SparkSession) -> None:
    row = Struct(tuple(Field(f"x{number}", kind) for number, (kind, _, _) in enumerate(CASES)))
    records = spark.createDataFrame([tuple(value for _, value, _ in CASES)], spark_struct(row))
    found = [texts(F.struct(field.name), Struct((field,))) for field in row.fields]
    assert [columns == [] for columns in found] == [text is None for *_, text in CASES]
    joined = [F.concat_ws(",", *columns) if columns else F.lit(None).cast("string") for columns in found]
    assert list(records.select(*joined).collect()[0]) == [text for _, _, text in CASES]
