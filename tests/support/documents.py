"""The documents of pipelines and of an environment as files, which commands are given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from frazil.declaration import Pipeline
from frazil.declaration.documents.document import document, environment_document
from frazil.declaration.documents.to_json import canonical
from frazil.declaration.environment import Environment


def written(folder: Path, pipelines: Sequence[Pipeline], environment: Environment) -> list[str]:
    """Write both into a folder. Return the command line's options for them."""
    listed, where = folder / "pipelines.json", folder / "environment.json"
    listed.write_bytes(canonical(document(pipelines)))
    where.write_bytes(canonical(environment_document(environment)))
    return ["--pipelines", str(listed), "--env", str(where)]
