"""A small complete run of the bench: every contender lands and is counted, figures are stored."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.fill import ROOT


@pytest.mark.long
@pytest.mark.e2e
def test_a_small_run_keeps_figures_of_every_contender_it_was_asked_for(tmp_path: Path) -> None:
    chosen = ["--shape", "nested_avro", "--way", "spike", "--way", "ours", "--way", "files"]
    small = ["--scale", "0.02", "--rounds", "1", "--heap", "1g", "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "bench", *chosen, *small],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "results.json").read_text())
    figures = {figure["way"]: figure for figure in found["races"]["nested_avro"]}
    assert figures.keys() == {"spike", "ours", "files"}
    assert all(figure["rows"] == 20_000 and figure["cpu"] > 0 and figure["wall"] > 0 for figure in figures.values())
    measured = [goal["says"] for goal in found["goals"] if goal["verdict"] != "not measured"]
    assert any("default layout / spike" in says for says in measured)
    assert (tmp_path / "plot.svg").read_text().startswith("<?xml")
