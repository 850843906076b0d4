"""Queries of tables with DuckDB, an engine that did not write them, without downloads at run time.

Its extensions are wheels of this environment, loaded by path. Automatic downloads are disabled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from frazil.errors import LocalPartFailed
from frazil.inference.sample import installed

EXTENSIONS = ("avro", "httpfs", "iceberg")
"""The extensions that Iceberg tables need, in the order of loading; `httpfs` reads S3."""


@contextmanager
def session(extensions: Sequence[str] = EXTENSIONS) -> Iterator[Any]:
    """Connect to an empty database in memory that can read Iceberg tables, in UTC.

    Raises `LocalPartFailed` if DuckDB or an extension is not installed.
    """
    with installed().connect() as connection:
        connection.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
        connection.execute("SET allow_persistent_secrets = false")
        for name in extensions:
            connection.load_extension(str(_extension(name)))
        connection.execute("SET TimeZone = 'UTC'")
        # With this cache, DuckDB 1.5.5 applies one data file's deletion vector to another if a Puffin file holds several:
        # its counts are then wrong, without an error.
        connection.execute("SET enable_external_file_cache = false")
        yield connection


def scan(metadata: str) -> str:
    """Return the query of all rows of the table with this metadata file."""
    return f"SELECT * FROM iceberg_scan({literal(metadata.removeprefix('file://'))})"  # noqa: S608 - it is quoted


def literal(text: str) -> str:
    """Return a text as a literal of SQL."""
    quoted = text.replace("'", "''")
    return f"'{quoted}'"


def identifier(name: str) -> str:
    """Return a name as a quoted identifier of SQL."""
    quoted = name.replace('"', '""')
    return f'"{quoted}"'


def know_store(
    connection: Any, *, endpoint: str | None, region: str | None, is_path_style: bool, scope: str = "", **keys: str
) -> None:
    """Configure a store in the connection, for locations that begin with `scope`; by default for all.

    `keys` are `key_id`, `secret` and `session_token`. Values are passed as variables, so that no failed statement can print one.
    """
    address = urlsplit(endpoint or "")
    given: dict[str, object] = {
        "region": region or "us-east-1",
        "endpoint": address.netloc,
        "use_ssl": (address.scheme == "https") if endpoint else None,
        "url_style": "path" if is_path_style else None,
        "scope": scope,
        **keys,
    }
    settings = {name: value for name, value in given.items() if value not in (None, "")}
    for name, value in settings.items():
        connection.execute(f"SET VARIABLE store_{name} = ?", [value])
    options = ", ".join(f"{name} getvariable('store_{name}')" for name in settings)
    name = f"{identifier(f'store of {scope}')} " if scope else ""
    connection.execute(f"CREATE OR REPLACE SECRET {name}(TYPE s3, {options})")
    for variable in settings:
        connection.execute(f"RESET VARIABLE store_{variable}")


def _extension(name: str) -> Path:
    package = find_spec(f"duckdb_extension_{name}")
    for folder in (package.submodule_search_locations or ()) if package else ():
        for file in sorted(Path(folder).rglob(f"{name}.duckdb_extension")):
            return file
    raise LocalPartFailed(
        f"DuckDB's extension {name} is not installed", where="duckdb", do="pip install 'frazil[local]'"
    )
