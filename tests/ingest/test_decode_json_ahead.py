"""What is read ahead of `from_json` is what `from_json` reads, whatever the bodies are."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from frazil.ingest.decode import REASON, ROW, Decoding, decode, rejected, rows
from frazil.ingest.decode_json import json_body
from frazil.ingest.json_batches import can_read, rows_of
from frazil.ingest.spark_types import spark_struct
from frazil.schemas.frames import prefixed
from frazil.schemas.types import Field, Kind, Primitive, Struct
from tests.support.json_bodies import body, damaged, row_type

pytestmark = pytest.mark.spark


def judged(spark: SparkSession, target: Struct, bodies: list[bytes]) -> list[str | None]:
    """The rows that the way without the accelerator makes of the bodies; None for what it rejects."""
    given = spark.createDataFrame(pa.table({"body": pa.array(bodies, pa.binary())})).coalesce(1)  # type: ignore[arg-type]
    row = replace(json_body(target), ahead=None).at_once(F.col("body"))
    found = given.select(row.alias("r")).toArrow()["r"]
    return told(found.combine_chunks())


def ahead(target: Struct, bodies: list[bytes]) -> list[str | None]:
    arrow_type = to_arrow_type(spark_struct(target).add("_decoded", T.BooleanType()))
    rows = rows_of(pa.array(bodies, pa.binary()), target, arrow_type)
    rows.validate(full=True)
    assert rows.type == arrow_type
    assert len(rows) == len(bodies)
    return told(rows)


def told(rows: pa.Array) -> list[str | None]:
    """Rows as text, in which -0.0 is not 0.0; times and dates as numbers, as Python has no year 10,000."""
    found = rows.cast(in_numbers(rows.type)).to_pylist()
    return [repr(row) if row is not None and row["_decoded"] else None for row in found]


def in_numbers(of: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(of):
        return pa.struct([field.with_type(in_numbers(field.type)) for field in of])
    if pa.types.is_list(of):
        return pa.list_(of.value_field.with_type(in_numbers(of.value_type)))
    if pa.types.is_date(of):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(of) else of


def bodies_of(dice: random.Random, target: Struct, many: int) -> list[bytes]:
    """A third is well written, a third is not in all its parts, a third is damaged."""
    good = [body(dice, target, wrong=0) for _ in range(many // 3)]
    wrong = [body(dice, target, wrong=dice.choice((0.02, 0.2))) for _ in range(many // 3)]
    return good + wrong + [damaged(dice, dice.choice(good + wrong), dice.choice(good)) for _ in range(many // 3)]


@pytest.mark.parametrize("seed", range(4))
def test_a_row_that_is_read_ahead_is_the_row_that_from_json_makes(spark: SparkSession, seed: int) -> None:
    dice = random.Random(seed)
    target = row_type(dice)
    assert can_read(target)
    bodies = bodies_of(dice, target, 3000)
    expected = judged(spark, target, bodies)
    alone = [ahead(target, [one])[0] for one in bodies]
    differ = [
        (one, got, want)
        for one, got, want in zip(bodies, alone, expected, strict=True)
        if got is not None and got != want
    ]
    assert not differ
    # Not for nothing: most of what can be read is, and not only what is well written.
    read = sum(got is not None for got in alone)
    assert read > 0.7 * sum(row is not None for row in expected)
    assert read > sum(row is not None for row in alone[:1000]) + 200


@pytest.mark.parametrize("seed", range(4))
def test_a_row_does_not_depend_on_its_neighbours(seed: int) -> None:
    dice = random.Random(seed)
    target = row_type(dice)
    bodies = bodies_of(dice, target, 3000)
    dice.shuffle(bodies)
    alone = [ahead(target, [one])[0] for one in bodies]
    place = 0
    while place < len(bodies):
        many = dice.choice((2, 3, 10, 100))
        rows = ahead(target, bodies[place : place + many])
        for number, row in enumerate(rows):
            assert row is None or row == alone[place + number]
        place += many


COLUMNS = Struct((Field("n", Primitive(Kind.LONG)), Field("at", Primitive(Kind.TIMESTAMPTZ))))
ROW_TYPE = "struct<n:bigint,at:timestamp,_decoded:boolean>"


def test_what_cannot_be_read_ahead_is_parsed_and_nothing_else_is(spark: SparkSession) -> None:
    known, other = prefixed(1, b""), prefixed(2, b"")
    decoding = Decoding(row_type=ROW_TYPE, frames={known: 1}, bodies={1: json_body(COLUMNS)})
    at = '"at": "2024-02-29T10:11:12.%sZ"'
    values = [
        *(known + body.encode() for body in ('{"n": 1}', '{"n": 2, ' + at % "5" + "}")),
        *(known + body.encode() for body in (' {"n": 3}', '{"n": 4, ' + at % "1234567" + "}", '{"n": 0, "n": 5}')),
        *(known + body.encode() for body in ('{"n": "6"}', '{"n": 7, "at": "soon"}', "")),
        other + b'{"n": 8}',
        b'{"n": 9}',
        None,
    ]
    given = [(value, None, number) for number, value in enumerate(values)]
    records = spark.createDataFrame(given, "value binary, headers array<struct<key:string,value:binary>>, offset long")
    decoded = decode(records.coalesce(1), decoding)
    landed = rows(decoded).select("offset", f"{ROW}.n", F.unix_micros(f"{ROW}.at").alias("at")).collect()
    second = 1_709_201_472_000_000
    assert [tuple(row) for row in landed] == [
        (0, 1, None),
        (1, 2, second + 500_000),
        (2, 3, None),
        (3, 4, second + 123_456),
        (4, 5, None),
    ]
    lost = rejected(decoded, decoding).select("offset", REASON).collect()
    assert [row.offset for row in lost] == list(range(5, len(values)))
    plan = rows(decoded)._jdf.queryExecution().executedPlan().toString()  # type: ignore[operator]
    assert plan.count("ArrowEvalPython") == 1
    assert re.findall(r"isnull\(\w+_ahead#\d+\)\) THEN from_json", plan)
    assert plan.count("from_json") == 1


def test_bodies_that_no_batch_can_read_are_not_carried_to_python() -> None:
    assert json_body(COLUMNS).ahead is not None
    assert json_body(COLUMNS, whole=True).ahead is None
    assert json_body(Struct((*COLUMNS.fields, Field("j", Primitive(Kind.STRING), as_json=True)))).ahead is None
    assert (
        json_body(
            Struct((Field("a", Primitive(Kind.LONG), source="A"), Field("a_1", Primitive(Kind.LONG), source="a")))
        ).ahead
        is None
    )
