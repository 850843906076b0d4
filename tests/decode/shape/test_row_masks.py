"""Masks in Spark: an HMAC is that of RFC 2104, and its key is in no plan."""

from __future__ import annotations

import hashlib
import hmac
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.declaration import Hmac, Pipeline, Redact, Secret, Shape, Table, Topic, Truncate
from frazil.decode.shape.row_masks import masked, masks_of
from frazil.decode.spark_types import spark_struct
from frazil.errors import InvalidInput
from frazil.schemas.types import Decimal as DecimalType
from frazil.schemas.types import Field, Kind, Primitive, Struct

pytestmark = pytest.mark.spark
_KEYED = Hmac(Secret(env="K"))
_KINDS = {
    "s": Kind.STRING,
    "n": Kind.LONG,
    "t": Kind.TIMESTAMPTZ,
    "l": Kind.TIMESTAMP,
    "d": Kind.DATE,
    "b": Kind.BINARY,
    "x": Kind.BOOLEAN,
}
ROW = Struct((*(Field(name, Primitive(kind)) for name, kind in _KINDS.items()), Field("c", DecimalType(20, 4))))
VALUES: dict[str, Any] = {
    "s": "æ 漢 \0",
    "n": -(2**63),
    "t": datetime(2026, 1, 31, 10, 20, 30, 5),
    "l": datetime(2026, 1, 31, 10, 20, 30, 5),
    "d": date(1, 1, 1),
    "b": b"\xff\x00",
    "x": True,
    "c": Decimal("1200.5000"),
}
TEXTS = {
    "s": "æ 漢 \0",
    "n": "-9223372036854775808",
    "t": "2026-01-31T10:20:30.000005Z",
    "l": "2026-01-31T10:20:30.000005",
    "d": "0001-01-01",
    "b": b"\xff\x00",
    "x": "true",
    "c": "1200.5",
}


def landed(spark: SparkSession, masks: dict[str, Any], key: str, values: dict[str, Any] = VALUES) -> Any:
    """Return a masked row, and the text of all plans of it."""
    pipeline = Pipeline(topic=Topic("t", value="avro"), table=Table("s.t"), shape=Shape(mask=masks))
    found = masks_of(pipeline, lambda secret: key)
    assert found is not None
    frame = spark.createDataFrame(
        [(tuple(values[f.name] for f in ROW.fields),)], spark_struct(Struct((Field("row", ROW),)))
    )
    made = found.prepared(frame).select(found.row(F.col("row"), ROW).alias("row"))
    (row,) = made.collect()
    return row["row"], made._jdf.queryExecution().toString() + str(found)


@pytest.mark.parametrize(
    "key", ["sixteen letters.", "a key of more than one block of sixty-four bytes, which is hashed first, as it says"]
)
def test_an_hmac_is_that_of_the_values_text_and_no_plan_has_its_key(spark: SparkSession, key: str) -> None:
    row, plans = landed(spark, dict.fromkeys(TEXTS, _KEYED), key)
    for name, text in TEXTS.items():
        data = text if isinstance(text, bytes) else text.encode()
        assert row[name] == hmac.new(key.encode(), data, hashlib.sha256).hexdigest(), name
    pads = [bytes(one ^ pad for one in key.encode()[:16]) for pad in (0x36, 0x5C)]
    assert "sha2" in plans
    assert all(
        word not in plans
        for word in (key, key[:16], *(pad.hex().upper() for pad in pads), *(pad.hex() for pad in pads))
    )


def test_nulls_stay_nulls(spark: SparkSession) -> None:
    row, _ = landed(spark, dict.fromkeys(TEXTS, _KEYED), "sixteen letters.", dict.fromkeys(VALUES))
    assert set(row.asDict().values()) == {None}


@pytest.mark.parametrize(
    ("name", "to", "expected"),
    [
        ("s", "1", "æ"),
        ("n", "10", None),
        ("c", "500", Decimal("1000.0000")),
        ("t", "hour", datetime(2026, 1, 31, 10)),
        ("l", "month", datetime(2026, 1, 1)),
        ("d", "year", date(1, 1, 1)),
    ],
)
def test_a_value_is_rounded_down(spark: SparkSession, name: str, to: str, expected: Any) -> None:
    values = {**VALUES, "n": -7} if name == "n" else VALUES
    row, _ = landed(spark, {name: Truncate(to)}, "", values)
    assert row[name] == (0 if name == "n" else expected)


def test_the_edges_of_numbers_are_rounded_toward_zero(spark: SparkSession) -> None:
    least = {**VALUES, "n": -(2**63), "c": Decimal("-9999999999999999.9999")}
    row, _ = landed(spark, {"n": Truncate("1000"), "c": Truncate("7")}, "", least)
    assert (row["n"], row["c"]) == (-(2**63) + 808, Decimal("-9999999999999999.0000") + 9999999999999999 % 7)


def test_a_short_secret_is_refused(spark: SparkSession) -> None:
    with pytest.raises(InvalidInput, match="fewer than 16 characters"):
        landed(spark, {"s": _KEYED}, "short")


def test_a_field_has_the_masks_of_all_its_names(spark: SparkSession) -> None:
    """With those of the newest name alone, a field in a renamed struct would stay as it is."""
    text = Primitive(Kind.STRING)
    inner = Struct((Field("email", text), Field("phone", text)))
    row = Struct((Field("client", inner, aliases=("customer",)),))
    pipeline = Pipeline(
        topic=Topic("t", value="avro"),
        table=Table("s.t"),
        shape=Shape(mask={"client.phone": Redact(), "customer.email": Redact()}),
    )
    found = masks_of(pipeline, lambda secret: "")
    assert found is not None
    records = spark.createDataFrame([((("a", "b"),),)], f"row {spark_struct(row).simpleString()}")
    (made,) = records.select(found.row(F.col("row"), row).alias("row")).collect()
    assert [*made.row.client] == ["***", "***"]
    assert masked(row, pipeline.shape.masks, "shape.mask") == row
