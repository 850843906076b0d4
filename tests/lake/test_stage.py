"""Which rows have no place in a table's partitions."""

from __future__ import annotations

import base64
import random
from decimal import Decimal
from urllib.parse import quote_plus

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.declaration.partitioning import partition_field
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.stage import PartitionLimits, partition_values, stage
from frazil.schemas.types import Decimal as DecimalType
from frazil.schemas.types import Field, Kind, Primitive, Struct

ROW = Struct(
    (
        Field("t", Primitive(Kind.STRING)),
        Field("u", Primitive(Kind.STRING)),
        Field("b", Primitive(Kind.BINARY)),
        Field("n", Primitive(Kind.LONG)),
        Field("at", Primitive(Kind.TIMESTAMPTZ)),
        Field("d", DecimalType(14, 4)),
        Field("s", Struct((Field("x", Primitive(Kind.STRING)),))),
    )
)


def limits(*by: str) -> PartitionLimits:
    return PartitionLimits(partition_values([partition_field(one) for one in by], ROW))


@pytest.mark.parametrize(
    "by",
    [
        ("days(at)", "bucket(16, t)", "n", "hours(at)"),
        ("truncate(20, t)", "truncate(60, b)", "truncate(10, n)", "d", "bucket(4, d)"),
        ("truncate(4, t)", "truncate(4, s.x)", "at"),
    ],
)
def test_partitions_that_hold_every_value_cost_nothing(by: tuple[str, ...]) -> None:
    assert limits(*by).problem({}) is None
    assert all(field.most <= 255 and field.least() is None for field in limits(*by).fields)


@pytest.mark.spark
def test_a_row_has_a_partition_exactly_if_its_folders_have_names(
    spark: SparkSession, iceberg: Iceberg, name: str
) -> None:
    """And if their names have room in one key of S3. Iceberg writes all that fit."""
    by, table = ("t", "truncate(60, u)", "s.x", "truncate(7, d)", "truncate(65, b)"), f"limits.{name}"
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.limits")
    spark.sql(
        f"CREATE TABLE lake.{table} (t STRING, u STRING, d DECIMAL(14,4), s STRUCT<x: STRING>, b BINARY) USING iceberg "
        "PARTITIONED BY (t, truncate(60, u), s.x, truncate(7, d), truncate(65, b))"
    )
    of_table = PartitionLimits.of(iceberg.load(table))
    assert [(f.source, f.transform, f.type) for f in of_table.fields] == [
        (f.source, f.transform, f.type) for f in limits(*by).fields
    ]
    draw, letters = random.Random(5), "ab0*-_. ~/%é中😀"

    def text() -> str | None:
        most = draw.choice((3, 30, 90, 260))
        found = "".join(draw.choice(letters[: draw.choice((8, 14))]) for _ in range(draw.randint(0, most)))
        return None if draw.random() < 0.1 else found

    numbers = [None, *(Decimal(n) / 10_000 for n in (-(10**14) + 1, -(10**14) + 3, -(10**14) + 9, 10**14 - 1, 0))]
    rows = [(text(), text(), draw.choice(numbers), (text(),), draw.randbytes(9)) for _ in range(300)]
    rows += [("a" * size, "é" * 40, None, ("b" * 250,), None) for size in range(150, 252, 3)]
    rows += [("a", "b", None, ("c",), bytes(65 - size) + b"\xfb\xef\xbe" * size) for size in range(25)]

    def fits(row: tuple[str | None, str | None, Decimal | None, tuple[str | None], bytes | None]) -> bool:
        t, u, d, (x,), b = row
        shown = {"t": t, "u_trunc": u[:60] if u is not None else None, "s.x": x}
        shown["b_trunc"] = base64.b64encode(b[:65]).decode() if b is not None else None
        sizes = [
            len(f"{n}={quote_plus(v, safe='*-._').replace('~', '%7E') if v is not None else 'null'}")
            for n, v in shown.items()
        ]
        is_whole = d is None or int(d * 10_000) // 7 * 7 > -(10**14)
        together = sum(sizes) + len(sizes) + len("d_trunc=") + 46
        return max(sizes) <= 255 and together <= of_table.room and is_whole

    frame = spark.createDataFrame(rows, "t STRING, u STRING, d DECIMAL(14,4), s STRUCT<x: STRING>, b BINARY")
    problem = of_table.problem({column: F.col(column) for column in frame.columns})
    assert problem is not None
    found = frame.withColumn("problem", problem).collect()
    assert [row.problem is None for row in found] == [fits(row) for row in rows]
    assert {fits(row) for row in rows} == {True, False}
    assert any(" are too long" in (row.problem or "") for row in found)
    landed = stage(iceberg, table, frame.where(problem.isNull()).coalesce(1), unique_id=name, at=0.0)
    assert landed.rows == sum(map(fits, rows))
