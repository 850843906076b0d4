"""Reading a table without Spark: the oracle of what landed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from frazil.clients.secrets import Secrets
from frazil.declaration.environment import Environment
from frazil.lake.catalogs import pyiceberg_properties


def table(environment: Environment, identifier: str) -> Table:
    """A table of a lake, as PyIceberg sees it."""
    catalog = load_catalog(environment.catalog.name, **pyiceberg_properties(environment, Secrets({}).read))
    return catalog.load_table(identifier)


def rows(environment: Environment, identifier: str) -> list[dict[str, Any]]:
    """All rows of a table."""
    found: pa.Table = table(environment, identifier).scan().to_arrow()
    return list(found.to_pylist())


def places(environment: Environment, identifier: str) -> list[tuple[int, int]]:
    """Partition and offset of each row, sorted; doubled rows stand twice."""
    names = [field.name for field in table(environment, identifier).schema().fields]
    prefix = "_kafka_" if "_kafka_offset" in names else ""
    found = table(environment, identifier).scan(selected_fields=(f"{prefix}partition", f"{prefix}offset")).to_arrow()
    return sorted(zip(*(found[f"{prefix}{name}"].to_pylist() for name in ("partition", "offset")), strict=True))
