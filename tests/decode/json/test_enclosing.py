from __future__ import annotations

from random import Random

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.decode.json.enclosing import CORRUPT, NAME, around_objects

pytestmark = pytest.mark.spark

OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, "allowSingleQuotes": "false"}
WRITTEN = T.StructType([T.StructField("a", T.LongType()), T.StructField("b", T.StringType())])
PARTS = (
    "{", "}", "{}", "{ }", '{"a":1}', '{"a":1', '{"b":"x"', '"a":2', '"a"', '"b":"}"', '"b":"{', '"c":{}', '"c":{', '"c":[', ":", ",",
    "[", "]", "1", '"', "\\", "null", " ", "\t", "\r", "\n", "\r\n", "\v", "\u0000", "\u0085", "\u2028", "\ufeff", "é", "corrupt",
)  # fmt: skip
NOT_UTF8 = (b"\xff", b"\xc3", b"\xed\xa0\x80")
ODD = (
    b"", b"}", b"{", b"{}", b"{ }", b" {} ", b"{\n}\n", b"{}}", b"{}{}", b"{},{}", b"[{}]", b"[{}}", b"[{}", b'{"a":1} ', b'{"a":1 }',
    b'{"a":1,}', b'{"a":1}}', b'{"a":1}{"a":2}', b'{"a":1} {"a":2}', b'{"a":1},{"a":2}', b'{"a":1}]}', b'{"b":"}', b'{"b":"\\}', b'{"b":"x"}\x00',
    b'{"a":1}\n\xe2\x80\xa8', b'{"a":1}\xc2\x85', b'{"a":"x"}', b'{"corrupt":"x","a":1}', b'{"c":{"a":1}', b'{"c":{}', b'{"c":[}',
    b'{"c":[{"a":1}', b'[{"a":1},{"a":2}}', b'{"a":1}\xff', b'{"b":"\xff"}', b'{"b":"\xc3}', b'{"c":"\xe2\x82}', b"{,}", b"{,", b"{{}",
)  # fmt: skip


def in_a_list(body: Column) -> Column:
    """What an object is by its definition: one element of a list beside an element that nobody else wrote. Null if it is none."""
    listed = T.ArrayType(T.StructType([*WRITTEN.fields, T.StructField("mark", T.BooleanType())]))
    read_as = T.StructType([T.StructField("list", listed), T.StructField(CORRUPT, T.StringType())])
    text = F.concat(F.lit('{"list":['), F.try_validate_utf8(body.cast("string")), F.lit(',{"mark":true}]}'))
    read = F.from_json(text, read_as, OPTIONS)
    first, last = F.get(read["list"], F.lit(0)), F.get(read["list"], F.lit(1))
    is_one = read[CORRUPT].isNull() & (F.size(read["list"]) == 2) & last["mark"] & first.isNotNull()
    return F.when(is_one, F.struct(first["a"], first["b"]))


def in_the_envelope(body: Column) -> Column:
    envelope = around_objects(WRITTEN)
    read = F.from_json(envelope.around(body), envelope.type, {**OPTIONS, **envelope.options})
    document = envelope.document(read)
    return F.when(read[CORRUPT].isNull() & envelope.is_alone(read), F.struct(document["a"], document["b"]))


def bodies(dice: Random, many: int) -> list[bytes]:
    drawn = []
    for _ in range(many):
        body = "".join(dice.choice(PARTS) for _ in range(dice.randrange(1, 8)))
        if dice.random() < 0.6:
            space = "".join(dice.choice((" ", "\n", "\t")) for _ in range(dice.randrange(3)))
            body = "{" + body + space + "}" + space
        octets = body.encode()
        if dice.random() < 0.1:
            at = dice.randrange(len(octets) + 1)
            octets = octets[:at] + dice.choice(NOT_UTF8) + octets[at:]
        drawn.append(octets)
    return drawn


def test_an_object_is_what_is_one_element_of_a_list(spark: SparkSession, seed: int) -> None:
    drawn = [*ODD, *(odd + b" \n" for odd in ODD), *(b"\t" + odd for odd in ODD), *bodies(Random(seed), 20_000)]
    records = spark.createDataFrame([(body,) for body in drawn], "body binary")
    read = records.select("body", in_a_list(F.col("body")).alias("old"), in_the_envelope(F.col("body")).alias("new"))
    rows = read.collect()
    assert not [row for row in rows if row.old != row.new]
    taken = {bytes(row.body) for row in rows if row.new is not None}
    assert {b"{}", b"{ }", b" {} ", b"{\n}\n", b'{"a":1 }', b'{"a":1}  \n'} <= taken
    assert 200 < len(taken) < len(rows) // 2


def test_the_name_of_the_mark_is_none_of_a_body(spark: SparkSession) -> None:
    assert NAME in CORRUPT
    (row,) = (
        spark.createDataFrame([(b'{"corrupt":"x","a":1}',)], "body binary")
        .select(in_the_envelope(F.col("body")).alias("r"))
        .collect()
    )
    assert row.r.a == 1
