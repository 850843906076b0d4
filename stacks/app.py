"""Entry point of synthesis: `cdktf.json` runs it, and so can you: `python -m stacks.app`. No credentials are needed.

| variable | meaning |
| --- | --- |
| `FRAZIL_ENVIRONMENTS` | environments to synthesise, joined by commas; all if left out |
| `FRAZIL_PIPELINES` | a Python file with `pipelines`, and with `topics` if deployment makes any; else `stacks/` |
| `FRAZIL_RELEASE` | the manifest of the release that should run; without one no run is scheduled |
| `FRAZIL_DESTROY_DATA` | the second key: the one environment whose data may be destroyed |
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from frazil.control.release import Release, parse_manifest
from frazil.errors import FrazilError
from infra.tf import App
from stacks.environment import compose
from stacks.environments import DEPLOYMENTS

_HERE = Path(__file__).parent


def main(settings: Mapping[str, str]) -> int:
    """Synthesise; 2 and every problem on stderr when something that is declared cannot stand."""
    wanted = [name.strip() for name in settings.get("FRAZIL_ENVIRONMENTS", ",".join(DEPLOYMENTS)).split(",")]
    unknown = [name for name in wanted if name not in DEPLOYMENTS]
    if unknown:
        print(f"error: there is no environment {', '.join(unknown)}: {', '.join(DEPLOYMENTS)}", file=sys.stderr)
        return 2
    try:
        file = Path(settings["FRAZIL_PIPELINES"]) if settings.get("FRAZIL_PIPELINES") else None
        declared = runpy.run_path(str(file)) if file else _examples()
        folder = file.parent if file else _HERE
        app = App()
        for name in wanted:
            compose(
                app,
                DEPLOYMENTS[name],
                declared["pipelines"],
                declared.get("topics", []),
                today=datetime.now(UTC).date(),
                text_of=lambda schema: (folder / schema).read_text("utf-8"),
                release=_release(settings.get("FRAZIL_RELEASE", "")),
                is_named_for_destruction=settings.get("FRAZIL_DESTROY_DATA") == name,
            )
        app.synth()
    except (FrazilError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _examples() -> dict[str, Any]:
    from stacks.pipelines import pipelines
    from stacks.topics import topics

    return {"pipelines": pipelines, "topics": topics}


def _release(manifest: str) -> Release | None:
    return parse_manifest(Path(manifest).read_bytes()) if manifest else None


if __name__ == "__main__":
    sys.exit(main(os.environ))
