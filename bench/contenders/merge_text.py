"""The `MERGE` that puts a batch of changes into a table, and the settings that it runs with."""

from __future__ import annotations

from collections.abc import Sequence

MERGE_SETTINGS = {"spark.sql.adaptive.enabled": "true", "spark.sql.shuffle.partitions": "4"}
"""The settings that suit a `MERGE` best on few cores."""


def merge_statement(table: str, batch: str, columns: Sequence[str], *, key: str, is_delete: str) -> str:
    """Return the statement. `batch` has the columns of the table and `is_delete`, and each `key` once."""
    sets = ", ".join(f"t.{column} = s.{column}" for column in columns)
    values = ", ".join(f"s.{column}" for column in columns)
    return (
        f"MERGE INTO {table} t USING {batch} s ON t.{key} = s.{key} "
        f"WHEN MATCHED AND s.{is_delete} THEN DELETE WHEN MATCHED THEN UPDATE SET {sets} "
        f"WHEN NOT MATCHED AND NOT s.{is_delete} THEN INSERT ({', '.join(columns)}) VALUES ({values})"
    )
