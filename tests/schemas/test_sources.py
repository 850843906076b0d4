"""Columns of partitions and sorting are found to be missing, or unfit, before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.declaration import Table
from frazil.schemas.declared_columns import declared_type
from frazil.schemas.sources import source_problems

ROW = declared_type(
    (
        "id long",
        "price decimal(10, 2)",
        "at timestamptz",
        "local timestamp",
        "day date",
        "ok boolean",
        "x double",
        "name string",
        "raw binary",
        "tags list<string>",
        "stock map<string, int>",
        "place struct<zip: string, tags: list<int>>",
        "extra json",
    )
)
KINDS: dict[str, str] = {
    "years": "at local day",
    "months": "at local day",
    "days": "at local day",
    "hours": "at local",
    "truncate": "id price name raw place.zip extra",
    "bucket": "id price at local day name raw place.zip extra",
    "identity": "id price at local day ok x name raw place.zip extra",
}
"""What Iceberg's specification says of each transform; JSON is its text."""
ALL = (*(field.name for field in ROW.fields), "place.zip", "place.tags")


def said(**table: Any) -> list[str]:
    return [str(problem) for problem in source_problems(Table("s.t", **table), ROW)]


@pytest.mark.parametrize("transform", KINDS)
def test_a_transform_takes_the_types_of_the_specification(transform: str) -> None:
    def text(column: str) -> str:
        argument = "8, " if transform in ("truncate", "bucket") else ""
        return column if transform == "identity" else f"{transform}({argument}{column})"

    taken = [column for column in ALL if not said(partition_by=(text(column),))]
    assert sorted(taken) == sorted(KINDS[transform].split())


def test_rows_are_sorted_by_values_that_have_an_order() -> None:
    taken = [column for column in ALL if not said(sort_by=(column,))]
    assert sorted(taken) == sorted(KINDS["identity"].split())


def test_an_unknown_column_is_named_with_the_next_one_and_ones_own_come_first() -> None:
    (found,) = said(partition_by=("days(att)",))
    assert found.startswith("table.partition_by[0]: att is not a column; there are at, day, extra, id, local, name,")
    assert found.endswith("Did you mean at?")
    of_partition, of_order = said(partition_by=("nothing_like_it",), sort_by=("id", "place.zap"))
    assert of_partition.endswith("Name a column of the value or a `_kafka_*` column")
    assert of_order.startswith("table.sort_by[1]: place.zap is not a column")


def test_columns_of_frazils_are_known_in_both_layouts() -> None:
    assert said(partition_by=("days(_kafka_timestamp)",), sort_by=("_kafka_offset", "_ingested_at")) == []
    assert said(partition_by=("days(_kafka.timestamp)",), sort_by=("_kafka.offset",), metadata_columns="struct") == []


def test_a_variant_partitions_and_orders_nothing() -> None:
    from frazil.schemas.json_columns import with_variants

    table = Table("s.t", partition_by=("extra",), sort_by=("extra",), format_version=3, json_columns="variant")
    found = [str(problem) for problem in source_problems(table, with_variants(ROW))]
    assert len(found) == 2
    assert all("extra is a variant" in problem for problem in found)
