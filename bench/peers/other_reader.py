"""Engines that read a contender's table beside Spark, each in a process of its own, so that one which takes too long can be ended.

`python -m bench.peers.other_reader ENGINE METADATA` reads all columns once, and prints what it found and what it took.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.duckdb_reader import ask

DUCKDB, PYICEBERG = "duckdb", "pyiceberg"
LIMIT_SECONDS = 120.0
"""A reader that takes longer is ended. DuckDB takes minutes for some hundred thousand equality deletes."""


class CannotReadError(Exception):
    """The engine refuses the table, or is not done in time; the message is one line."""


def read(engine: str, metadata: str, limit: float = LIMIT_SECONDS) -> dict[str, Any]:
    """Return `rows`, the sum of `ids`, and the seconds `wall` and `cpu` that one scan of the table takes.

    `engine` is one of `ENGINES`. The start of the process is not part of the seconds. Raises `CannotReadError`.
    """
    command = [sys.executable, "-m", "bench.peers.other_reader", engine, metadata]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        raise CannotReadError(f"not done after {limit:.0f} s") from None
    if ended.returncode:
        last = [line for line in ended.stderr.splitlines() if line.strip()] or [f"it ended with {ended.returncode}"]
        raise CannotReadError(last[-1])
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def _duckdb(metadata: str) -> tuple[int, int]:
    listed = "count(*), sum(id), sum(hash(lake_table)::DOUBLE)"
    count, ids, _ = ask(metadata, f"SELECT {listed} FROM lake_table")[1][0]
    return int(count), int(ids)


def _pyiceberg(metadata: str) -> tuple[int, int]:
    import pyarrow.compute as pc
    from pyiceberg.table import StaticTable

    rows = StaticTable.from_metadata(metadata).scan().to_arrow()
    return rows.num_rows, int(pc.sum(rows["id"]).as_py())


ENGINES: Mapping[str, Callable[[str], tuple[int, int]]] = {DUCKDB: _duckdb, PYICEBERG: _pyiceberg}


def main() -> None:
    engine, metadata = sys.argv[1:]
    wall, cpu = time.monotonic(), time.process_time()
    try:
        rows, ids = ENGINES[engine](metadata)
    except Exception as refused:  # noqa: BLE001 - each engine has errors of its own, and the page names them
        sys.exit((str(refused) or type(refused).__name__).splitlines()[0])
    print(json.dumps({"rows": rows, "ids": ids, "wall": time.monotonic() - wall, "cpu": time.process_time() - cpu}))


if __name__ == "__main__":
    main()
