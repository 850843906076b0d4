"""Run Python code of a page as a reader does, and print the values of its names.

`python run_snippets.py < SNIPPETS` reads a JSON list of pairs: code, and the name whose value is wanted. It runs each code in the
working folder and prints the list of values: tables are lists of records.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def plain(value: Any) -> Any:
    """Return a value as JSON has it; the table of a library as a list of records."""
    for name in ("to_pylist", "to_dicts", "collect"):  # PyArrow, Polars, Spark
        if hasattr(value, name):
            return getattr(value, name)()
    return value.to_dict("records") if hasattr(value, "to_dict") else value


def run(code: str, name: str) -> Any:
    """Run the code, and return the value of the name."""
    values: dict[str, Any] = {}
    exec(code, values)  # the code is that of the repository's own pages
    return plain(values[name])


if __name__ == "__main__":
    json.dump([run(code, name) for code, name in json.load(sys.stdin)], sys.stdout, default=str)
