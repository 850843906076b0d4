"""Queries of tables with DuckDB, an engine that did not write them, without downloads at run time.

Its extensions are wheels of this environment, loaded by path. Automatic downloads are disabled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from frazil.declaration.catalogs import ObjectStore
from frazil.declaration.secret import Secret
from frazil.errors import LocalPartFailed

EXTENSIONS = ("avro", "httpfs", "iceberg")
"""The extensions that Iceberg tables need, in the order of loading; `httpfs` reads S3."""


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
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
        for name in EXTENSIONS:
            connection.load_extension(str(_extension(name)))
        connection.execute("SET TimeZone = 'UTC'")
        # With this cache, DuckDB 1.5.5 applies one data file's deletion vector to another if a Puffin file holds several:
        # its counts are then wrong, without an error.
        connection.execute("SET enable_external_file_cache = false")
        if store is not None:
            _know(connection, store, resolve)
        location = metadata.removeprefix("file://").replace("'", "''")
        connection.execute(f"CREATE TEMP VIEW lake_table AS SELECT * FROM iceberg_scan('{location}')")  # noqa: S608
        answer = connection.execute(question)
        names: Sequence[Any] = answer.description or ()
        return [str(name[0]) for name in names], answer.fetchall()


def _know(connection: Any, store: ObjectStore, resolve: Callable[[Secret], str]) -> None:
    """Configure the store in the connection. Values are passed as variables, so that no failed statement can print one."""
    address = urlsplit(store.endpoint or "")
    settings: dict[str, object] = {"region": store.region or "us-east-1"}
    if store.endpoint:
        settings |= {"endpoint": address.netloc, "use_ssl": address.scheme == "https"}
    if store.path_style:
        settings["url_style"] = "path"
    if store.access_key_id and store.secret_access_key:
        settings |= {"key_id": resolve(store.access_key_id), "secret": resolve(store.secret_access_key)}
    for name, value in settings.items():
        connection.execute(f"SET VARIABLE store_{name} = ?", [value])
    options = ", ".join(f"{name} getvariable('store_{name}')" for name in settings)
    connection.execute(f"CREATE SECRET (TYPE s3, {options})")


def _extension(name: str) -> Path:
    package = find_spec(f"duckdb_extension_{name}")
    for folder in (package.submodule_search_locations or ()) if package else ():
        for file in sorted(Path(folder).rglob(f"{name}.duckdb_extension")):
            return file
    raise LocalPartFailed(
        f"DuckDB's extension {name} is not installed", where="duckdb", do="pip install 'frazil[local]'"
    )
