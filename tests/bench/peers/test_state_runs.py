"""A small complete race of state tables: each table holds the state that its records leave, and has figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.fill import ROOT
from bench.peers.state_race import HOSTS


@pytest.mark.long
@pytest.mark.e2e
def test_each_contender_leaves_the_same_state_and_is_read(tmp_path: Path) -> None:
    small = ["--shape", "state", "--scale", "0.02", "--rounds", "1", "--heap", "1g", "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "bench.peers", *small],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "results.json").read_text())["state"]
    assert found["changes"]["live"] == 6_000 - found["changes"]["deletes"]
    figures = {(figure["way"], figure["step"]): figure for figure in found["figures"]}
    for way in HOSTS:
        assert all(figures[way, step]["bytes"] > 0 for step in ("load", "batch"))
        assert all(figures[way, step]["cpu"] > 0 for step in ("load", "batch", "spark"))
    assert "equality deletes" in figures["flink_upsert", "pyiceberg"]["refused"]
    assert not any(figure["refused"] for figure in figures.values() if figure["way"] != "flink_upsert")
