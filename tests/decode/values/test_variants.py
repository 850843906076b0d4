"""JSON text becomes a variant of the same value, or its record has no row."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.decode.spark_types import spark_struct
from frazil.decode.values.variants import as_variants, settled
from frazil.schemas.json_columns import VARIANT, with_texts
from frazil.schemas.types import Field, Kind, ListOf, MapOf, Primitive, Struct

pytestmark = pytest.mark.spark

REJECTED = "rejected"
DECODED = Field("_decoded", Primitive(Kind.BOOLEAN))
DEEPEST, LONGEST = 1000, 20_000_000
"""Arrays within each other, and characters of a string, that Spark's `parse_json` reads."""
CASES: list[tuple[str | None, str | None]] = [
    (None, None),
    ("null", "null"),
    ('{"b":[1,null,true],"a":"\\u00e9"}', '{"a":"é","b":[1,null,true]}'),
    ("9" * 38, "9" * 38),
    ("9" * 39, REJECTED),
    ("-" + "9" * 39, REJECTED),
    ('{"a":[' + "9" * 39 + "]}", REJECTED),
    ('{"a" : [ 1, ' + "9" * 39 + " ] }", REJECTED),
    ('"' + "9" * 39 + '"', '"' + "9" * 39 + '"'),
    (f'{{"a":"x,{"9" * 39},y"}}', f'{{"a":"x,{"9" * 39},y"}}'),
    (f'["\\\\",{"9" * 39},"\\""]', REJECTED),
    (f'["\\",{"9" * 39},\\""]', f'["\\",{"9" * 39},\\""]'),
    ("[-1e400]", REJECTED),
    ("9" * 320 + "e1", REJECTED),
    ('["Infinity",1e99]', '["Infinity",1.0E99]'),
    ("0." + "1" * 38, "0." + "1" * 38),
    ("0." + "1" * 37, "0." + "1" * 37),
    ("0." + "1" * 39, REJECTED),
    ("12345678901234567890.1234567890123456789", REJECTED),
    ("1.50", "1.5"),
    ("1e2", "100.0"),
    ("1.7976931348623157E308", "1.7976931348623157E308"),
    ("[" * DEEPEST + "]" * DEEPEST, "[" * DEEPEST + "]" * DEEPEST),
    ("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), REJECTED),
    ("{", REJECTED),
]


def made(spark: SparkSession, of: Struct, *rows: tuple[Any, ...]) -> list[Any]:
    """Return the rows as JSON, those that are not decoded as `REJECTED`."""
    columns = spark_struct(Struct((*with_texts(of).fields, DECODED)))
    texts = spark.createDataFrame(
        [(n, (*row, True)) for n, row in enumerate(rows)], f"n int, t {columns.simpleString()}"
    )
    texts = texts.withColumn("r", as_variants(F.col("t"), of)).withColumn("r", settled(F.col("r"), F.col("t"), of))
    found = texts.select("n", "r._decoded", F.to_json(F.col("r").dropFields("_decoded")).alias("json")).collect()
    return [row["json"] if row["_decoded"] else REJECTED for row in sorted(found, key=lambda row: row["n"])]


def test_a_variant_has_the_value_of_its_text_or_there_is_no_row(spark: SparkSession) -> None:
    found = made(spark, Struct((Field("x", VARIANT),)), *[(text,) for text, _ in CASES])
    wanted = [what if what == REJECTED else "{}" if what is None else f'{{"x":{what}}}' for _, what in CASES]
    assert dict(zip([text for text, _ in CASES], found, strict=True)) == dict(
        zip([text for text, _ in CASES], wanted, strict=True)
    )


def test_variants_inside_structs_lists_and_maps_are_made_and_judged(spark: SparkSession) -> None:
    inner = Struct((Field("n", Primitive(Kind.INT)), Field("v", VARIANT)))
    of = Struct((Field("s", inner), Field("l", ListOf(inner)), Field("m", MapOf(Primitive(Kind.STRING), inner))))
    good, bad = (1, "[2]"), (1, "9" * 39)
    rows = [(good, [good, None], {"k": good}), (None, None, None), (bad, None, None), (good, [good, bad], None)]
    found = made(spark, of, *rows, (good, [], {"k": bad}), (good, [(1, None)], {"k": None}))
    one = {"n": 1, "v": [2]}
    assert [row if row == REJECTED else json.loads(row) for row in found] == [
        {"s": one, "l": [one, None], "m": {"k": one}},
        {},
        REJECTED,
        REJECTED,
        REJECTED,
        {"s": one, "l": [{"n": 1}], "m": {"k": None}},
    ]


@pytest.mark.long
def test_a_string_that_is_too_long_for_a_variant_has_no_row(spark: SparkSession) -> None:
    x = F.concat(F.lit('"'), F.repeat(F.lit("a"), F.col("count").cast("int")), F.lit('"'))
    texts = spark.createDataFrame([(LONGEST,), (LONGEST + 1,)], "count int")
    texts = texts.select("count", F.struct(x.alias("x"), F.lit(True).alias("_decoded")).alias("t"))
    of = Struct((Field("x", VARIANT),))
    texts = texts.withColumn("r", as_variants(F.col("t"), of)).withColumn("r", settled(F.col("r"), F.col("t"), of))
    assert {row["count"]: row["_decoded"] for row in texts.select("count", "r._decoded").collect()} == {
        LONGEST: True,
        LONGEST + 1: False,
    }


def test_many_variants_cost_as_much_as_their_number(spark: SparkSession) -> None:
    """Their expressions are one for each: twice as many for each would not end here."""
    of = Struct(tuple(Field(f"f{n}", VARIANT) for n in range(40)))
    (found,) = made(spark, of, ("[1]",) * 40)
    assert json.loads(found) == {f"f{n}": [1] for n in range(40)}
