"""A question about one table, answered by DuckDB from its files: an engine that did not write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from frazil.declaration.catalogs import ObjectStore
from frazil.declaration.secret import Secret
from frazil.local.duckdb_query import know_store, scan, session


def ask(
    metadata: str,
    question: str,
    *,
    store: ObjectStore | None = None,
    resolve: Callable[[Secret], str] = lambda secret: "",
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run `question`, SQL in which `lake_table` is the table of this metadata file. Return columns and rows.

    `store` holds the table's files, and `resolve` reads the store's keys. A table in a folder needs neither.
    """
    with session() as connection:
        if store is not None:
            keys = {"key_id": store.access_key_id, "secret": store.secret_access_key}
            read = {name: resolve(key) for name, key in keys.items() if key is not None}
            know_store(connection, endpoint=store.endpoint, region=store.region, is_path_style=store.path_style, **read)
        connection.execute(f"CREATE TEMP VIEW lake_table AS {scan(metadata)}")
        answer = connection.execute(question)
        names: Sequence[Any] = answer.description or ()
        return [str(name[0]) for name in names], answer.fetchall()
