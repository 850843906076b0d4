"""An environment in a folder, and documents as files, which commands are given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from frazil.declaration import Environment, Kafka, LocalCatalog, Pipeline
from frazil.declaration.documents.document import document, environment_document
from frazil.declaration.documents.to_json import canonical


def environment_in(folder: Path, name: str = "dev", **members: Any) -> Environment:
    """Return an environment whose tables are in a folder, and whose broker does not run."""
    catalog = LocalCatalog(path=str(folder / "catalog.db"), warehouse=f"file://{folder}/warehouse")
    return Environment(name=name, kafka=Kafka(bootstrap="127.0.0.1:9"), catalog=catalog, **members)


def written(folder: Path, pipelines: Sequence[Pipeline], environment: Environment) -> list[str]:
    """Write both into a folder. Return the command line's options for them."""
    listed, where = folder / "pipelines.json", folder / "environment.json"
    listed.write_bytes(canonical(document(pipelines)))
    where.write_bytes(canonical(environment_document(environment)))
    return ["--pipelines", str(listed), "--env", str(where)]
