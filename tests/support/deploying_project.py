"""A project that deploys: its program describes environments as a test says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_DESCRIBES = """
import json, os, pathlib, sys
verb, *arguments = sys.argv[1:]
described = pathlib.Path("described.json")
found = json.loads(described.read_text())
if verb == "describe":
    if arguments[0] not in found:
        sys.exit(3)
    print(json.dumps(found[arguments[0]]))
    sys.exit()
"""


def make_project(folder: Path, does: str = "") -> None:
    """Write the project. `does` is the program's code for other verbs than `describe`."""
    (folder / "frazil.toml").touch()
    (folder / "infra_app.py").write_text(_DESCRIBES + does)


def describe(folder: Path, name: str = "dev", **members: Any) -> None:
    """Change members of the description of an environment."""
    file = folder / "described.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**known, name: {**known.get(name, {}), **members}}))
