"""Adds the code of deployment to the wheel, as one package whose name no project uses itself.

The checkout has `infra`, `policies` and `stacks` at its top. Installed under these names, they would hide a project's own
folders, or be hidden by them. In the wheel they are `frazil_deploy.infra` and so on, and their imports are rewritten.
"""

from __future__ import annotations

import ast
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "frazil_deploy"
FOLDERS = ("infra", "policies", "stacks")
LEFT_OUT = ("stacks/example.py", "stacks/pipelines.py", "stacks/topics.py", "infra/provider_schemas/")
"""Declarations of the checkout, which a project replaces, and what only tests read."""


def rewritten(source: str, place: str) -> str:
    """Return a module whose imports of the three folders are imports of the package. Its lines keep their numbers.

    Raises `ValueError` for an import that has another form: `import stacks.workflow.app` would bind another name.
    """
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import) and any(alias.name.partition(".")[0] in FOLDERS for alias in node.names):
            raise ValueError(f"{place}:{node.lineno}: write `from … import …`, which the wheel's build can rewrite")
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] in FOLDERS:
            line = lines[node.lineno - 1]
            start = line[: node.col_offset] + "from "
            if not line.startswith(f"{start}{node.module}"):
                raise ValueError(f"{place}:{node.lineno}: write `from {node.module} import …` with single spaces")
            lines[node.lineno - 1] = f"{start}{PACKAGE}.{line.removeprefix(start)}"
    return "".join(lines)


def write_package(root: Path, target: Path) -> None:
    """Write the package into the empty folder `target`."""
    (target / "__init__.py").write_text('"""The code that deploys Frazil: constructs, policies, stacks."""\n')
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            name = file.relative_to(root)
            if file.is_dir() or "__pycache__" in name.parts or str(name).startswith(LEFT_OUT):
                continue
            place = target / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if file.suffix == ".py":
                place.write_text(rewritten(file.read_text("utf-8"), str(name)), "utf-8")
            else:
                shutil.copyfile(file, place)


class DeploymentCode(BuildHookInterface[BuilderConfig]):
    """Hatchling's hook: it writes the package beside the build, and removes it afterwards."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the package to a wheel. An editable install uses the checkout itself."""
        self._folder = tempfile.mkdtemp(prefix="frazil-wheel-")
        if version != "editable":
            write_package(Path(self.root), Path(self._folder))
            build_data["force_include"][self._folder] = PACKAGE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was written."""
        shutil.rmtree(self._folder)
