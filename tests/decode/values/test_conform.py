"""What a decoder yields becomes the table's row type, and nothing is done where nothing remains."""

from __future__ import annotations

from decimal import Decimal as Dec

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.decode.spark_types import spark_struct
from frazil.decode.values.conform import conform
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type

INT, LONG, STRING = (Primitive(kind) for kind in (Kind.INT, Kind.LONG, Kind.STRING))
POINT = Struct((Field("x", INT),))


def one(name: str, of: Type, *, as_json: bool = False, source: str = "") -> Struct:
    return Struct((Field(name, of, as_json=as_json, source=source),))


@pytest.mark.spark
def test_structures_become_text_names_and_types_change_and_null_stays_null(spark: SparkSession) -> None:
    yielded = Struct(
        (
            Field("column0", INT),
            Field("text", STRING, as_json=True),
            Field("list", ListOf(one("inner", STRING, as_json=True))),
            Field("map", MapOf(STRING, Decimal(9, 2))),
        )
    )
    target = Struct(
        (
            Field("the x.y", LONG),
            Field("text", STRING, as_json=True),
            Field("list", ListOf(one("inner", STRING, as_json=True))),
            Field("map", MapOf(STRING, Decimal(30, 2))),
        )
    )
    kind = "column0 int, text struct<x:int>, list array<struct<inner:array<int>>>, map map<string,decimal(9,2)>"
    value = (1, (2,), [([3],), (None,)], {"k": Dec("1.25")})
    records = spark.createDataFrame([(value,), ((None, None, None, None),), (None,)], f"r struct<{kind}>").coalesce(1)
    rows = records.select(conform(F.col("r"), yielded, target).alias("r"))
    assert rows.schema["r"].dataType.simpleString() == spark_struct(target).simpleString()
    assert [row.r and row.r.asDict(recursive=True) for row in rows.collect()] == [
        {"the x.y": 1, "text": '{"x":2}', "list": [{"inner": "[3]"}, {"inner": None}], "map": {"k": Dec("1.25")}},
        dict.fromkeys(("the x.y", "text", "list", "map")),
        None,
    ]
