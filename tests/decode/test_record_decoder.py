"""Decoding a frame of records: each is a row, or has a reason; and Spark reads and decodes it once."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from frazil.decode.avro.avro_decoder import RegisteredAvro, avro_body
from frazil.decode.decoded_columns import REASON, ROW, SCHEMA_ID, UNKNOWN, WAITING, schema_id_of
from frazil.decode.decoder import Side
from frazil.decode.frames.framed import Registered
from frazil.decode.json.json_decoder import RegisteredJson, json_body
from frazil.decode.record_decoder import RecordDecoder
from frazil.schemas.avro import parse, reader, row_type
from frazil.schemas.evolution.table_mapping import landing
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Field, Kind, Primitive, Struct
from frazil.schemas.wire_format import guid_header, prefixed
from tests.support.shop import ORDER
from tests.support.shop import avro as written

pytestmark = pytest.mark.spark
GUID = "00010203-0405-0607-0809-0a0b0c0d0e0f"
ORDERS = parse(json.dumps(ORDER))
TARGET = landing(Struct(()), [(1, row_type(ORDERS))]).target
SIDE = Side(target=TARGET)


def records(spark: SparkSession, *values: bytes | None) -> DataFrame:
    given = [(value, None, n) for n, value in enumerate(values)]
    kind = "value binary, headers array<struct<key:string,value:binary>>, offset long"
    return spark.createDataFrame(given, kind).coalesce(1)


def order(number: int, schema_id: int = 1) -> bytes:
    return prefixed(schema_id, written(ORDER, {"order_id": number, "user": "u", "amount": None}))


def test_a_pipeline_none_of_whose_schemas_fit_rejects_all_and_still_counts_them(spark: SparkSession) -> None:
    values = RegisteredAvro(side=SIDE, refused={prefixed(1, b""): Reason.INCOMPATIBLE_SCHEMA})
    decoder = RecordDecoder(values=values)
    observed = Observation()
    given = records(spark, order(1), order(2)).observe(observed, F.count(F.lit(1)).alias("read"))
    assert decoder.rows(given).select(ROW).collect() == []
    assert observed.get == {"read": 2}
    found = decoder.rejected(given).select(REASON, SCHEMA_ID, UNKNOWN).collect()
    assert [tuple(row) for row in found] == [("incompatible_schema", 1, None)] * 2


@pytest.mark.long
def test_frames_are_listed_until_a_verdict_on_them_is_final(spark: SparkSession) -> None:
    known, bad, foreign, waits, new = (prefixed(number, b"") for number in range(1, 6))
    values = RegisteredAvro(
        side=SIDE,
        frames={known: 1},
        bodies={1: avro_body(reader(ORDERS, TARGET), TARGET)},
        refused={bad: Reason.UNREADABLE_SCHEMA, foreign: Reason.FOREIGN_SCHEMA},
        waiting=[waits],
    )
    given = records(spark, *(order(n, n) for n in range(1, 6)), known + b"\xff", None)
    decoder = RecordDecoder(values=values)
    assert [row.offset for row in decoder.rows(given).collect()] == [0]
    found = decoder.rejected(given).select("offset", REASON, UNKNOWN, WAITING).collect()
    assert [tuple(row) for row in found] == [
        (1, "unreadable_schema", None, None),
        (2, "foreign_schema", foreign.hex().upper(), None),
        (3, "unknown_schema", None, waits.hex().upper()),
        (4, "unknown_schema", new.hex().upper(), None),
        (5, "undecodable", None, None),
        (6, "tombstone", None, None),
    ]


def test_a_number_is_its_schema_id_whatever_type_of_the_schema_it_is() -> None:
    values = Registered(side=SIDE, frames={prefixed(7, b"", (0,)): 7, guid_header(GUID, (3,)): 3 << 32 | 7})
    assert values.schema_ids == (7,)
    assert schema_id_of(3 << 32 | 0xFFFF_FFFF) == 0xFFFF_FFFF


@pytest.mark.long
@pytest.mark.parametrize(("is_thorough", "readings"), [(False, [1]), (True, [1, 1])])
def test_the_text_that_json_is_read_from_is_made_in_a_projection_of_its_own(
    spark: SparkSession, *, is_thorough: bool, readings: list[int]
) -> None:
    target = Struct((Field("order_id", Primitive(Kind.LONG)),))
    values = RegisteredJson(side=Side(target=target), frames={prefixed(1, b""): 1}, bodies={1: json_body(target)})
    decoder = RecordDecoder(values=values).thorough if is_thorough else RecordDecoder(values=values)
    framed = prefixed(1, b'{"order_id": 7}')
    given = spark.createDataFrame([(framed, None)], "value binary, headers array<struct<key:string,value:binary>>")
    decoded = decoder.rows(given).select(ROW)
    assert [row[0].order_id for row in decoded.collect()] == [7]
    projections = decoded._jdf.queryExecution().optimizedPlan().toString().split("\n")
    # Below `from_json`, which Spark interprets, the text would be interpreted too.
    assert not [line for line in projections if "from_json" in line and "concat" in line]
    assert [line for line in projections if "concat" in line]
    # No use of what is read reads again.
    assert [line.count("from_json") for line in projections if "from_json" in line] == readings
