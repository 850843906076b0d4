"""The frame as Spark reads it is the frame as `schemas/wire_format.py` does, for every case that both share, and at random."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.decode.decoder import Side
from frazil.decode.frames.framed import Registered
from frazil.decode.frames.wire_format import DEPTH
from frazil.decode.protobuf.protobuf_decoder import RegisteredProtobuf
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Struct
from frazil.schemas.wire_format import VALUE_HEADER, Frame, FrameProblem, parse, prefixed

pytestmark = pytest.mark.spark

CASES = json.loads((Path(__file__).parents[2] / "schemas" / "frames.json").read_text())
RECORDS = "value binary, key binary, headers array<struct<key:string,value:binary>>"
# The reasons that dead letters have for each problem of a frame.
REASONS = {
    FrameProblem.NULL_VALUE: Reason.TOMBSTONE,
    FrameProblem.EMPTY: Reason.TOO_SHORT,
    FrameProblem.TOO_SHORT: Reason.TOO_SHORT,
    FrameProblem.WRONG_MAGIC: Reason.WRONG_MAGIC,
    FrameProblem.HEADER_TOO_SHORT: Reason.HEADER_TOO_SHORT,
    FrameProblem.HEADER_WRONG_MAGIC: Reason.HEADER_WRONG_MAGIC,
    FrameProblem.TRUNCATED_MESSAGE_INDEX: Reason.BAD_MESSAGE_INDEX,
    FrameProblem.BAD_MESSAGE_INDEX: Reason.BAD_MESSAGE_INDEX,
}
Record = tuple[bytes | None, list[tuple[str, bytes | None]]]


def raw(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def read(
    spark: SparkSession, records: list[Record], *, protobuf: bool = False, key: bool = False
) -> list[Frame | FrameProblem | Reason]:
    """What the data path makes of each record: a frame, or the reason why it has none."""
    column = "key" if key else "value"
    made = RegisteredProtobuf if protobuf else Registered
    decoder = made(side=Side(target=Struct(()), is_key=key))
    given = [(None if key else value, value if key else None, headers) for value, headers in records]
    frame = decoder.framed(spark.createDataFrame(given, RECORDS).coalesce(1))
    found = (
        frame.withColumns(decoder.verdicts())
        .select(
            F.col(f"_frazil_{column}_frame").alias("frame"),
            F.col(f"_frazil_{column}_body").alias("body"),
            decoder.reason().alias("reason"),
            decoder.id_in_frame(F.col(column)).alias("id"),
        )
        .collect()
    )
    return [_told(row, protobuf=protobuf) for row in found]


def _told(row: Any, *, protobuf: bool) -> Frame | FrameProblem | Reason:
    if row.frame is None:
        return Reason(row.reason)
    assert row.reason == Reason.UNKNOWN_SCHEMA  # nothing else is wrong with it
    whole = bytes(row.frame) + bytes(row.body)
    if row.frame[0] == 1:
        found = parse(bytes(row.body), [(VALUE_HEADER, bytes(row.frame))], protobuf=protobuf)
    else:
        found = parse(whole, protobuf=protobuf)
        assert isinstance(found, Frame)
        assert row.id == found.schema_id
    return found


def wanted(found: Frame | FrameProblem) -> Frame | Reason:
    return found if isinstance(found, Frame) else REASONS[found]


@pytest.mark.parametrize(("protobuf", "key"), [(False, False), (True, False), (False, True)])
def test_the_data_path_reads_each_case_as_the_rules_say(spark: SparkSession, protobuf: bool, key: bool) -> None:
    cases = [c for c in CASES if c.get("protobuf", False) is protobuf and c.get("key", False) is key]
    records: list[Record] = [(raw(c["value"]), [(n, raw(v)) for n, v in c.get("headers", [])]) for c in cases]
    found = read(spark, records, protobuf=protobuf, key=key)
    for case, record, one in zip(cases, records, found, strict=True):
        assert one == wanted(parse(*record, protobuf=protobuf, key=key)), case["name"]


@pytest.mark.parametrize("protobuf", [False, True])
def test_the_data_path_reads_random_bytes_as_the_rules_say(spark: SparkSession, protobuf: bool) -> None:
    random = Random(7)
    small = [0, 0, 0, 1, 2, 4, 6, 0x80, 0x81, 0xFF, 63]

    def some(longest: int) -> bytes:
        return bytes(random.choice(small) for _ in range(random.randrange(longest)))

    records: list[Record] = [
        (some(20), [(random.choice([VALUE_HEADER, "x"]), some(26)) for _ in range(random.randrange(3))])
        for _ in range(3_000)
    ]
    records += [(b"\0\0\0\0\1" + some(12), []) for _ in range(3_000)]
    found = read(spark, records, protobuf=protobuf)
    assert [*found] == [wanted(parse(*record, protobuf=protobuf)) for record in records]
    assert sum(isinstance(one, Frame) for one in found) > 1_000


def test_an_index_deeper_than_anyone_nests_is_a_bad_one(spark: SparkSession) -> None:
    depths: list[Record] = [(prefixed(1, b"", [1] * n), []) for n in (DEPTH, DEPTH + 1)]
    deepest, too_deep = read(spark, depths, protobuf=True)
    assert isinstance(deepest, Frame)
    assert len(deepest.message_index) == DEPTH
    assert too_deep is Reason.BAD_MESSAGE_INDEX
