"""Readers of a contender's table in processes of their own: what they find, and what they say that find nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from bench.peers.other_reader import ENGINES, CannotReadError, read


@pytest.fixture
def metadata(tmp_path: Path) -> str:
    """Write a table of three rows, and return its metadata file."""
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/lake.db", warehouse=f"file://{tmp_path}/lake")
    catalog.create_namespace("bench")
    rows = pa.table({"id": pa.array([1, 2, 4], pa.int64()), "word": ["a", "b", "c"]})
    table = catalog.create_table("bench.words", schema=rows.schema)
    table.append(rows)
    return table.metadata_location


@pytest.mark.parametrize("engine", ENGINES)
def test_a_reader_counts_rows_and_its_own_seconds(engine: str, metadata: str) -> None:
    found = read(engine, metadata)
    assert (found["rows"], found["ids"]) == (3, 7)
    assert found["wall"] > 0
    assert found["cpu"] > 0


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_engine_refuses_is_one_line(engine: str, tmp_path: Path) -> None:
    with pytest.raises(CannotReadError) as refused:
        read(engine, f"{tmp_path}/nothing.metadata.json")
    assert str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_reader_that_takes_too_long_is_ended(metadata: str) -> None:
    with pytest.raises(CannotReadError, match="not done after 0 s"):
        read("duckdb", metadata, limit=0.001)
