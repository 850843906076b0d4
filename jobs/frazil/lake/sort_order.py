"""A declared sort order as Spark's columns."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.declaration.partitioning import SortField


def order(fields: Iterable[SortField]) -> list[Column]:
    """Return the columns to sort by, with direction and place of nulls."""
    return [_column(field) for field in fields]


def _column(field: SortField) -> Column:
    name = F.col(".".join(f"`{part.replace('`', '``')}`" for part in field.source.split(".")))
    if field.ascending:
        return name.asc_nulls_first() if field.nulls_first else name.asc_nulls_last()
    return name.desc_nulls_first() if field.nulls_first else name.desc_nulls_last()
