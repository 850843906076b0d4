"""All text of a row is found, wherever it is."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.ingest.spark_types import spark_struct
from frazil.ingest.texts import texts
from frazil.schemas.types import Field, Kind, ListOf, MapOf, Primitive, Struct, Type

pytestmark = pytest.mark.spark
STRING, LONG = Primitive(Kind.STRING), Primitive(Kind.LONG)
INNER = Struct((Field("s", STRING), Field("n", LONG), Field("t", ListOf(STRING))))


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
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
    ],
    ids=str,
)
def test_text_is_found(spark: SparkSession, kind: Type, value: Any, found: str | None) -> None:
    row = Struct((Field("x", kind),))
    records = spark.createDataFrame([(value,)], spark_struct(row))
    columns = texts(F.struct("x"), row)
    if found is None:
        assert columns == []
    else:
        assert records.select(F.concat_ws(",", *columns)).collect() == [(found,)]
