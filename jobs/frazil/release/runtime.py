"""The runtime that a release was built for, stored in its package as `frazil/expected.json`."""

from __future__ import annotations

import json
import pkgutil

from frazil.declaration.documents.from_json import VERSION, from_json, members
from frazil.declaration.documents.to_json import canonical, to_json
from frazil.release.manifest import Runtime

EXPECTED = "expected.json"


def expected_document(runtime: Runtime, release: str) -> bytes:
    """Return the document that the package of a release stores."""
    return canonical({"version": VERSION, "release": release, "runtime": to_json(runtime)})


def expected() -> Runtime | None:
    """Return the runtime that this release was built for; None in a checkout."""
    try:
        source = pkgutil.get_data("frazil", EXPECTED)
    except OSError:
        return None
    return from_json(Runtime, members(json.loads(source), EXPECTED)["runtime"], "runtime") if source else None
