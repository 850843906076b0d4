"""The options and the document of a run, of `make bench` and of `make bench-peers`."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from frazil.version import VERSION


def parser(
    make: str, says: str | None, *, shapes: Sequence[str], ways: Sequence[str], out: Path
) -> argparse.ArgumentParser:
    """Return the parser of the options that both have."""
    made = argparse.ArgumentParser(prog=f"make {make} ARGS=…", description=says)
    made.add_argument("--shape", action="append", default=[], choices=shapes)
    made.add_argument("--way", action="append", default=[], choices=ways, help="a contender")
    made.add_argument("--scale", type=float, default=1.0, help="times the rows of each topic")
    made.add_argument("--rounds", type=int, default=0, help="rounds that count; 0 is each race's own")
    made.add_argument("--heap", default="3g", help="of each contender's JVM")
    made.add_argument("--cores", type=int, default=2)
    made.add_argument("--out", type=Path, default=out, help="the folder for figures and logs")
    made.add_argument("--seed", type=int, default=20261101)
    return made


def keep(given: argparse.Namespace, found: Mapping[str, Any], seconds: float, **versions: str) -> dict[str, Any]:
    """Write the document of a run, and return it."""
    machine = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": VERSION,
        "versions": versions,
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "python": platform.python_version(),
        "load": os.getloadavg(),
        "seconds": seconds,
        "arguments": {name: value for name, value in vars(given).items() if name != "out"},
    }
    document = {"version": 1, "machine": machine, **found}
    (given.out / "results.json").write_text(json.dumps(document, indent=1))
    return document
