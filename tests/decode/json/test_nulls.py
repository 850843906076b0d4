"""Values that are JSON's null, by format."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.decode.connect_json.connect_decoder import EmbeddedConnectJson, PlainConnectJson, has_null_payload
from frazil.decode.decoded_columns import as_read, without
from frazil.decode.decoder import Decoder, Side, Step, Unframed
from frazil.decode.json.json_decoder import (
    PlainJson,
    PlainJsonSchema,
    RegisteredJson,
    is_framed_null,
    is_null,
    json_body,
)
from frazil.schemas.types import Field, Kind, Primitive, Struct

pytestmark = pytest.mark.spark

FRAME = b"\0\0\0\0\7"
ROW = Struct((Field("id", Primitive(Kind.LONG)),))
SIDE = Side(target=ROW)
PLAIN = PlainJson(side=SIDE, body=json_body(ROW))
PLAIN_SCHEMA = PlainJsonSchema(side=SIDE, body=json_body(ROW))
PLAIN_CONNECT = PlainConnectJson(side=SIDE, body=json_body(ROW))
FRAMED = RegisteredJson(side=SIDE, frames={FRAME: 7}, bodies={7: json_body(ROW)})
INSIDE = EmbeddedConnectJson(side=SIDE)
OTHER = Unframed(side=SIDE, body=json_body(ROW))
OF_SCHEMA = b'{"schema":{"type":"struct","fields":[' + b",".join([b'{"type":"int64","field":"id"}'] * 9) + b"]},"


@pytest.mark.parametrize(
    ("says_null", "null", "kept"),
    [
        (
            is_null,
            [b"null", b" null\n"],
            [b"nulls", b'"null"', b"nul", b"[null]", b'{"a":null}', b"", b"null null", b" " * 80 + b"null"],
        ),
        (
            has_null_payload,
            [
                OF_SCHEMA + b'"payload":null}',
                b'{"schema":null, "payload" : null }\n',
                b'{"payload":null}',
                b'{"schema":"\\"payload\\":null}","payload":null}',
                b'{"schema":{"payload":{"payload":null}},"payload":null}',
            ],
            [
                OF_SCHEMA + b'"payload":{"payload":null}}',
                OF_SCHEMA + b'"payload":{"a":null}}',
                b"null",
                b'{"payload":"null"}',
                b'{"schema":null}',
                b'"payload":null',
                b'{"payload":[null]}',
                b'garbage "payload":null}',
                b'{"schema":{"a":,"payload":null}',
                b'{"payload":{"id":1,"payload":null}',  # cut by one byte
                b'{"schema":1} "payload":null}',
                b'{"schema":1,"payload":{"id":1},"payload":null}',
                b'{"schema":"\xff","payload":null}',
                b"{'schema':1,\"payload\":null}",
                b'["payload":null}',
            ],
        ),
        (
            is_framed_null,
            [b"null", b"\0\0\0\0\7null", b"\0\0\0\xc3\xa9null", b"\0\xff\xfe\n\rnull"],
            [b'\0\0\0\0\7{"a":null}', b"\0\0\0\0\7nulls", b'\0\0\0\0\7"null"', b"\1\0\0\0\7null", b"\0null\0"],
        ),
    ],
)
def test_a_null_of_json_is_no_value(spark: SparkSession, says_null: Step, null: list[bytes], kept: list[bytes]) -> None:
    given = [*null, *kept, None]
    frame = spark.createDataFrame([(number, value) for number, value in enumerate(given)], "n int, value binary")
    records = without(frame, "value", says_null(F.col("value")))
    found = records.select("n", "value", as_read(records, "value").alias("as_read")).orderBy("n").collect()
    assert [None if row.value is None else bytes(row.value) for row in found] == [*[None] * len(null), *kept, None]
    assert [None if row.as_read is None else bytes(row.as_read) for row in found] == given


@pytest.mark.parametrize(
    ("decoder", "null", "kept"),
    [
        (PLAIN, [b"null", b"\tnull "], [b"{}", b"", b'"null"', b'{"payload":null}']),
        (PLAIN_SCHEMA, [b"null", b" null\n"], [b"{}", b""]),
        (PLAIN_CONNECT, [b"null", b" null", b'{"payload":null}'], [b'{"payload":{}}', b""]),
        (INSIDE, [b"null", b'{"schema":null,"payload":null}'], [b'{"payload":"null"}']),
        (FRAMED, [FRAME + b"null", FRAME + b" null\n"], [FRAME + b"{}", b"\0\0\0\0\x09null", b"null"]),
        (OTHER, [], [b"null", b""]),
    ],
)
def test_in_a_keyed_table_jsons_null_is_a_delete_in_each_format(
    spark: SparkSession, decoder: Decoder, null: list[bytes], kept: list[bytes]
) -> None:
    given = [(number, value, None) for number, value in enumerate([*null, *kept])]
    records = spark.createDataFrame(given, "n int, value binary, headers array<struct<key: string, value: binary>>")
    found = [
        None if row["value"] is None else bytes(row["value"])
        for row in decoder.with_deletes().prepared(records).orderBy("n").collect()
    ]
    assert found == [*[None] * len(null), *kept]
