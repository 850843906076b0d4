"""The oracle of landed records, which reads a table without Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table

from frazil.clients.secrets import Secrets
from frazil.declaration.environment import Environment
from frazil.lake.catalogs import pyiceberg_properties


def table(environment: Environment, identifier: str) -> Table:
    """Load a table of a lake with PyIceberg."""
    return catalog(environment).load_table(identifier)


def catalog(environment: Environment) -> Catalog:
    """Return the catalog of a lake, as another engine has it."""
    return load_catalog(environment.catalog.name, **pyiceberg_properties(environment, Secrets({}).read))


def rows(environment: Environment, identifier: str) -> list[dict[str, Any]]:
    """Return all rows of a table."""
    found: pa.Table = table(environment, identifier).scan().to_arrow()
    return list(found.to_pylist())


def places(environment: Environment, identifier: str) -> list[tuple[int, int]]:
    """Return partition and offset of each row, sorted, with duplicates."""
    names = [field.name for field in table(environment, identifier).schema().fields]
    prefix = "_kafka_" if "_kafka_offset" in names else ""
    found = table(environment, identifier).scan(selected_fields=(f"{prefix}partition", f"{prefix}offset")).to_arrow()
    return sorted(zip(*(found[f"{prefix}{name}"].to_pylist() for name in ("partition", "offset")), strict=True))


def contents(environment: Environment, identifier: str) -> set[int]:
    """Return what the files of all snapshots hold, by their manifests: rows (0), positions to delete (1), or keys to delete (2)."""
    found = table(environment, identifier)
    manifests = {
        manifest.manifest_path: manifest for each in found.snapshots() for manifest in each.manifests(found.io)
    }
    return {
        entry.data_file.content for manifest in manifests.values() for entry in manifest.fetch_manifest_entry(found.io)
    }
