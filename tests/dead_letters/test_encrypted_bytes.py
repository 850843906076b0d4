"""The bytes of dead letters are encrypted, each bound to its record's place."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.dead_letters.encrypted_bytes import Encryption, decrypted, is_encrypted, key_of
from frazil.errors import InvalidInput

KEY = key_of("a secret of 24 characters")
PLACE = {"topic": "shop.orders", "partition": 3, "offset": 2**40}


@pytest.mark.spark
def test_what_spark_encrypts_is_decrypted_at_its_place_only(spark: SparkSession) -> None:
    columns = "topic string, partition int, offset long, key binary, value binary, headers array<struct<key: string, value: binary>>"
    headers = [("who", b"a"), ("who", None), ("håndtak", b"")]
    records = spark.createDataFrame([(*PLACE.values(), None, b"v" * 70_000, headers)], columns)
    encryption = Encryption(KEY)
    held = encryption.held(F.col("value"))
    rows = encryption.prepared(records).select(*(column.alias(name) for name, column in held.items()))
    plan = rows._jdf.queryExecution().toString()
    assert all(text not in plan for text in (KEY.hex(), KEY.hex().upper(), str(list(KEY))))
    (row,) = rows.collect()
    assert row["key"] is None
    assert b"vvv" not in row["value"]
    assert decrypted(row["value"], KEY, PLACE, "value") == b"v" * 70_000
    assert [decrypted(one["value"], KEY, PLACE, f"header {one['key']}") for one in row["headers"]] == [b"a", None, b""]
    for key, place, part in (
        (key_of("another one of 24 characters"), PLACE, "value"),
        (KEY, {**PLACE, "offset": 5}, "value"),
        (KEY, PLACE, "key"),
    ):
        with pytest.raises(InvalidInput, match="is encrypted with another secret, or was changed"):
            decrypted(row["value"], key, place, part)
    again = rows.collect()[0]["value"]
    assert again != row["value"], "each nonce is new"


def test_plain_bytes_are_as_they_are() -> None:
    assert [decrypted(data, KEY, PLACE, "value") for data in (None, b"", b"plain")] == [None, b"", b"plain"]
    assert [is_encrypted(data) for data in (None, b"", b"frazil-gcm-1:abc")] == [False, False, True]


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has fewer than 16 characters"):
        key_of("short")
    assert "key" not in repr(Encryption(KEY))
