"""DuckDB as a reader of tables: another engine than the one that wrote them, and nothing to install at run time.

Its extensions are wheels of this environment, loaded by path; DuckDB is told not to fetch any.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from frazil.errors import LocalPartFailed

EXTENSIONS = ("avro", "iceberg")
"""What reading Iceberg tables needs, in the order of loading."""


def ask(metadata: str, question: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The columns and rows that answer `question`, SQL in which `lake_table` is the table of this metadata file."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
        for name in EXTENSIONS:
            connection.load_extension(str(_extension(name)))
        connection.execute("SET TimeZone = 'UTC'")
        location = metadata.removeprefix("file://").replace("'", "''")
        connection.execute(f"CREATE TEMP VIEW lake_table AS SELECT * FROM iceberg_scan('{location}')")  # noqa: S608
        answer = connection.execute(question)
        names: Sequence[Any] = answer.description or ()
        return [str(name[0]) for name in names], answer.fetchall()


def _extension(name: str) -> Path:
    package = find_spec(f"duckdb_extension_{name}")
    for folder in (package.submodule_search_locations or ()) if package else ():
        for file in sorted(Path(folder).rglob(f"{name}.duckdb_extension")):
            return file
    raise LocalPartFailed(
        f"DuckDB's extension {name} is not installed", where="duckdb", do="pip install 'frazil[local]'"
    )
