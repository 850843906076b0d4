"""Values of an order as a person writes them, and as DuckDB and Spark understand what is printed of them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal as Number
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from frazil.errors import InvalidInput
from frazil.lake.sql.order_values import order_values
from frazil.lake.sql.sql_engine import SqlEngine
from frazil.schemas.types import Decimal, Field, Kind, Primitive, Type

VALUES: list[tuple[Type, str, Any]] = [
    (Primitive(Kind.STRING), "null", "null"),
    (Primitive(Kind.INT), "-7", -7),
    (Primitive(Kind.LONG), str(-(2**63)), -(2**63)),
    (Primitive(Kind.LONG), str(2**63 - 1), 2**63 - 1),
    (Primitive(Kind.BINARY), "00ff27", b"\x00\xff'"),
    (Primitive(Kind.DATE), "2026-03-01", date(2026, 3, 1)),
    (Primitive(Kind.TIMESTAMPTZ), "2026-03-01T02:00:00.000001+02:00", datetime(2026, 3, 1, 0, 0, 0, 1, tzinfo=UTC)),
    (Primitive(Kind.TIMESTAMPTZ), "0900-03-01 00:00Z", datetime(900, 3, 1, tzinfo=UTC)),
    (Primitive(Kind.TIMESTAMP), "2026-03-01", datetime(2026, 3, 1)),
    (Decimal(10, 2), "-12.50", Number("-12.50")),
    (Decimal(38, 0), "9" * 38, Number("9" * 38)),
    (Decimal(10, 2), "1e3", Number(1000)),
    (Decimal(10, 9), "0.000000001", Number("0.000000001")),
]


def of(kind: Type, text: str) -> Any:
    (value,) = order_values([text], [Field("at", kind)], "shop.orders")
    return value


@pytest.mark.parametrize(("kind", "text", "value"), VALUES)
def test_a_value_is_that_of_its_column(kind: Type, text: str, value: Any) -> None:
    assert of(kind, text) == value
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'America/New_York'")
        answer = connection.execute(f"SELECT ({SqlEngine.DUCKDB.literal(of(kind, text))}) AS v").to_arrow_table()
    assert answer["v"].to_pylist() == [value]


@pytest.mark.long
@pytest.mark.spark
def test_spark_reads_each_value(spark: SparkSession) -> None:
    query = ", ".join(f"{SqlEngine.SPARK.literal(of(kind, text))} AS c{n}" for n, (kind, text, _) in enumerate(VALUES))
    found = spark.sql(f"SELECT {query}").toArrow().to_pylist()[0]
    assert list(found.values()) == [value for _, _, value in VALUES]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *((Primitive(Kind.LONG), text) for text in ("null", "", "1.5", "9223372036854775808", "1 OR 1=1", "0x1")),
        *((Primitive(Kind.DATE), text) for text in ("null", "2026-02-30", "2026-03-01T00:00:00")),
        *((Primitive(Kind.TIMESTAMPTZ), text) for text in ("2026-03-01T00:00:00", "9999-12-31T23:59:59-01:00", "now")),
        (Primitive(Kind.TIMESTAMPTZ), "2026-03-01T00:00:00.0000001Z"),
        (Primitive(Kind.TIMESTAMP), "2026-03-01T00:00:00Z"),
        (Primitive(Kind.BINARY), "0"),
        *((Decimal(10, 2), text) for text in ("null", "NaN", "Infinity", "1e99", "1e-99", "9" * 39)),
    ],
)
def test_what_is_no_value_is_refused(kind: Type, text: str) -> None:
    with pytest.raises(InvalidInput, match="is no .*--at-order, column at|--at-order, column at.*is no") as refused:
        of(kind, text)
    assert refused.value.do.startswith("Write a") or "hexadecimal" in refused.value.do


def test_an_order_has_no_more_values_than_columns() -> None:
    columns = [Field("version", Primitive(Kind.LONG)), Field("at", Primitive(Kind.DATE))]
    assert order_values(["1", "2026-01-01"], columns, "t") == (1, date(2026, 1, 1))
    assert order_values(["1"], columns, "t") == (1,)
    with pytest.raises(InvalidInput, match="the order has 2 columns, and 3 values are given"):
        order_values(["1", "2026-01-01", "3"], columns, "t")
    with pytest.raises(InvalidInput, match="the table has no order"):
        order_values(["1"], [], "t")


@pytest.mark.parametrize(
    ("engine", "written"),
    [
        (SqlEngine.TRINO, "TIMESTAMP '2026-03-01 00:00:00.000001 UTC'"),
        (SqlEngine.ATHENA, "TIMESTAMP '2026-03-01 00:00:00.000001 UTC'"),
        (SqlEngine.SNOWFLAKE, "TO_TIMESTAMP_TZ('2026-03-01 00:00:00.000001 +00:00')"),
    ],
)
def test_instants_are_those_of_the_engine(engine: SqlEngine, written: str) -> None:
    assert engine.literal(VALUES[6][2]) == written
