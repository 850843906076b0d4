"""What release 0.1.0 makes of the summaries that this release stores: it reads the plain ones and fails at the compact ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from frazil.lake.ledger import stored
from frazil.lake.offsets import Offsets
from frazil.lake.totals import Counts, Totals
from tests.compat.test_older_release import RELEASE

READ = """
import json, sys
from types import ModuleType
older = ModuleType("older")
sys.modules["older"] = older
source, summary = json.load(sys.stdin)
exec(compile(source, "ledger.py", "exec"), older.__dict__)
entry = older.Entry.of(1, summary)
print(json.dumps([str(entry.start), str(entry.end), str(entry.totals)]))
"""


def read_by_the_older(root: Path, summary: dict[str, str]) -> subprocess.CompletedProcess[str]:
    asked = subprocess.run(
        ["git", "show", f"{RELEASE}:jobs/frazil/lake/ledger.py"], cwd=root, capture_output=True, text=True, check=False
    )
    if asked.returncode:
        pytest.skip(f"the history has no commit {RELEASE}")
    given = json.dumps([asked.stdout, summary])
    return subprocess.run([sys.executable, "-c", READ], input=given, capture_output=True, text=True, check=False)


def summary(partitions: int) -> dict[str, str]:
    start, end = (Offsets("orders", "T1", dict.fromkeys(range(partitions), at)) for at in (1_000_000, 1_000_007))
    values = {"start": str(start), "end": str(end), "totals": str(Totals().after(start, end, Counts()))}
    return {"frazil.format": "1", **{f"frazil.{key}": value for key, value in values.items()}}


def test_the_older_release_reads_the_ledger_of_300_partitions(root: Path) -> None:
    given = summary(300)
    found = read_by_the_older(root, stored(given))
    assert json.loads(found.stdout) == [given[f"frazil.{key}"] for key in ("start", "end", "totals")]


def test_the_older_release_fails_at_the_ledger_of_1000_partitions_rather_than_take_it_for_none(root: Path) -> None:
    found = read_by_the_older(root, stored(summary(1000)))
    assert (found.returncode, found.stdout) == (1, "")
    assert "JSONDecodeError" in found.stderr
