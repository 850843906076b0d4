"""Values that are JSON's null, by format."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from frazil.declaration.options import ValueFormat
from frazil.decode.decode import decode
from frazil.decode.decoding import Decoding
from frazil.decode.json.json_decoder import json_decoder
from frazil.decode.json.nulls import as_read, null_of, with_deletes, without_nulls
from frazil.schemas.types import Field, Kind, Primitive, Struct

pytestmark = pytest.mark.spark

FRAME = b"\0\0\0\0\7"
ROW = Struct((Field("id", Primitive(Kind.LONG)),))
PLAIN = Decoding(row_type="id bigint, _decoded boolean", unframed=json_decoder(ROW))
FRAMED = Decoding(row_type="id bigint, _decoded boolean", frames={FRAME: 7}, bodies={7: json_decoder(ROW)})
INSIDE = Decoding(row_type="id bigint, _decoded boolean", has_schemas_inside=True)
OF_SCHEMA = b'{"schema":{"type":"struct","fields":[' + b",".join([b'{"type":"int64","field":"id"}'] * 9) + b"]},"


@pytest.mark.parametrize(
    ("value_format", "null", "kept"),
    [
        (
            ValueFormat.JSON,
            [b"null", b" null\n"],
            [b"nulls", b'"null"', b"nul", b"[null]", b'{"a":null}', b"", b"null null", b" " * 80 + b"null"],
        ),
        (
            ValueFormat.CONNECT_JSON,
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
            ValueFormat.JSON_SCHEMA,
            [b"null", b"\0\0\0\0\7null", b"\0\0\0\xc3\xa9null", b"\0\xff\xfe\n\rnull"],
            [b'\0\0\0\0\7{"a":null}', b"\0\0\0\0\7nulls", b'\0\0\0\0\7"null"', b"\1\0\0\0\7null", b"\0null\0"],
        ),
    ],
)
def test_a_null_of_json_is_no_value(
    spark: SparkSession, value_format: ValueFormat, null: list[bytes], kept: list[bytes]
) -> None:
    given = [*null, *kept, None]
    frame = spark.createDataFrame([(number, value) for number, value in enumerate(given)], "n int, value binary")
    is_null = null_of(value_format)
    assert is_null is not None
    records = without_nulls(frame, "value", is_null)
    found = records.select("n", "value", as_read(records, "value").alias("as_read")).orderBy("n").collect()
    assert [None if row.value is None else bytes(row.value) for row in found] == [*[None] * len(null), *kept, None]
    assert [None if row.as_read is None else bytes(row.as_read) for row in found] == given


@pytest.mark.parametrize(
    ("value_format", "decoding", "null", "kept"),
    [
        (ValueFormat.JSON, PLAIN, [b"null", b"\tnull "], [b"{}", b"", b'"null"', b'{"payload":null}']),
        (ValueFormat.JSON_SCHEMA, PLAIN, [b"null", b" null\n"], [b"{}", b""]),
        (ValueFormat.CONNECT_JSON, PLAIN, [b"null", b" null", b'{"payload":null}'], [b'{"payload":{}}', b""]),
        (ValueFormat.CONNECT_JSON, INSIDE, [b"null", b'{"schema":null,"payload":null}'], [b'{"payload":"null"}']),
        (
            ValueFormat.JSON_SCHEMA,
            FRAMED,
            [FRAME + b"null", FRAME + b" null\n"],
            [FRAME + b"{}", b"\0\0\0\0\x09null", b"null"],
        ),
        (ValueFormat.TEXT, PLAIN, [], [b"null", b""]),
    ],
)
def test_in_a_keyed_table_jsons_null_is_a_delete_in_each_format(
    spark: SparkSession, value_format: ValueFormat, decoding: Decoding, null: list[bytes], kept: list[bytes]
) -> None:
    how = with_deletes(decoding, value_format)
    given = [(number, value, None) for number, value in enumerate([*null, *kept])]
    records = spark.createDataFrame(given, "n int, value binary, headers array<struct<key: string, value: binary>>")
    found = [
        None if row["value"] is None else bytes(row["value"]) for row in decode(records, how).orderBy("n").collect()
    ]
    assert found == [*[None] * len(null), *kept]


def test_other_formats_have_no_null() -> None:
    assert {null_of(each) for each in ValueFormat if "json" not in each.value} == {None}
