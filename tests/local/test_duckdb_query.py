"""DuckDB reads tables without its cache of files, and tells no key."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from frazil.clients.secrets import Secrets
from frazil.declaration.catalogs import ObjectStore
from frazil.declaration.environment import Environment
from frazil.declaration.secret import Secret
from tests.support import oracle
from tests.support.documents import environment_in
from tests.support.duckdb_reader import ask

ROWS = {"order_id": [1, 2, 3], "user": ["a", "b", "a"]}
QUESTION = "SELECT user, count(*) AS orders FROM lake_table GROUP BY ALL ORDER BY ALL"


def written(environment: Environment) -> str:
    """The metadata file of a table with these rows, in two commits and gzip, as Frazil's tables are."""
    catalog = oracle.catalog(environment)
    catalog.create_namespace_if_not_exists("duck")
    rows = pa.table(ROWS)
    table = catalog.create_table(
        f"duck.t{uuid.uuid4().hex}", rows.schema, properties={"write.metadata.compression-codec": "gzip"}
    )
    table.append(rows.slice(0, 1))
    table.append(rows.slice(1))
    return table.metadata_location


def test_a_question_that_fails_tells_no_key() -> None:
    secret = "planted-'secret'"
    store = ObjectStore(
        endpoint="http://127.0.0.1:9",
        path_style=True,
        access_key_id=Secret(env="ID"),
        secret_access_key=Secret(env="KEY"),
    )
    with pytest.raises(Exception, match="Could not connect") as failed:
        ask("s3://nowhere/v1.metadata.json", QUESTION, store=store, resolve=Secrets({"ID": "id", "KEY": secret}).read)
    assert secret not in str(failed.value)


def test_duckdb_keeps_no_cache_of_files(tmp_path: Path) -> None:
    """With its cache, DuckDB 1.5.5 applies one file's deletion vector to another file of the same Puffin file."""
    metadata = written(environment_in(tmp_path))
    setting = "SELECT value FROM duckdb_settings() WHERE name = 'enable_external_file_cache'"
    assert ask(metadata, setting)[1] == [("false",)]
