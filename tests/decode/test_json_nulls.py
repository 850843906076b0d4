"""Values that are JSON's null, by format."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from frazil.declaration.options import ValueFormat
from frazil.decode.json_nulls import null_of, without_nulls

pytestmark = pytest.mark.spark

OF_SCHEMA = b'{"schema":{"type":"struct","fields":[' + b'{"type":"int64","field":"id"},' * 9 + b'],"optional":true},'


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
            [OF_SCHEMA + b'"payload":null}', b'{"schema":null, "payload" : null }\n'],
            [
                OF_SCHEMA + b'"payload":{"payload":null}}',
                OF_SCHEMA + b'"payload":{"a":null}}',
                b"null",
                b'{"payload":"null"}',
                b'{"schema":null}',
                b'"payload":null',
                b'{"payload":[null]}',
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
    found = without_nulls(frame, "value", is_null).orderBy("n").collect()
    assert [None if row.value is None else bytes(row.value) for row in found] == [*[None] * len(null), *kept, None]


def test_other_formats_have_no_null() -> None:
    assert {null_of(each) for each in ValueFormat if "json" not in each.value} == {None}
