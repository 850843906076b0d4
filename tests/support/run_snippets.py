"""Run Python code of a page as a reader does, and print what its names hold.

`python run_snippets.py NAME… < CODE` runs the code in the working folder, then prints the named values as one JSON object: tables as
a list of records, other values as JSON has them.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def plain(value: Any) -> Any:
    """Return a value of a table library as a list of records."""
    for convert in ("to_pylist", "to_dicts", "collect"):  # PyArrow, Polars, Spark
        if hasattr(value, convert):
            return [dict(row) if isinstance(row, dict) else list(row) for row in getattr(value, convert)()]
    return value.to_dict("records") if hasattr(value, "to_dict") else value


if __name__ == "__main__":
    names: dict[str, Any] = {}
    exec(sys.stdin.read(), names)  # the code is of the repository's own pages
    json.dump({name: plain(names[name]) for name in sys.argv[1:]}, sys.stdout, default=str)
