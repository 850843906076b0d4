"""Small complete runs of both benches: every contender lands what was produced, is counted, and has figures."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.fill import ROOT
from bench.peers.state_race import HOSTS

pytestmark = [pytest.mark.long, pytest.mark.e2e]


def run(module: str, folder: Path, *, shapes: Sequence[str], ways: Sequence[str] = ()) -> dict[str, Any]:
    chosen = [f"--shape={shape}" for shape in shapes] + [f"--way={way}" for way in ways]
    small = ["--scale", "0.02", "--rounds", "1", "--heap", "1g", "--out", str(folder)]
    command = [sys.executable, "-m", module, *chosen, *small]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return found


def test_a_small_run_keeps_figures_of_every_contender_it_was_asked_for(tmp_path: Path) -> None:
    found = run("bench", tmp_path, shapes=["nested_avro"], ways=["spike", "ours"])
    figures = {figure["way"]: figure for figure in found["races"]["nested_avro"]}
    assert figures.keys() == {"spike", "ours"}
    assert all(figure["rows"] == 20_000 and figure["cpu"] > 0 and figure["wall"] > 0 for figure in figures.values())
    measured = [goal["says"] for goal in found["goals"] if goal["verdict"] != "not measured"]
    assert any("default layout / spike" in says for says in measured)


def test_each_peer_lands_what_was_produced_and_has_figures(tmp_path: Path) -> None:
    ways = ["flink", "flink_bare", "connect", "ours"]
    found = run("bench.peers", tmp_path, shapes=["nested_avro", "light_json"], ways=ways)
    for shape, rows, landed in (
        ("nested_avro", 20_000, {"flink", "flink_bare", "connect", "ours"}),
        ("light_json", 12_000, {"flink", "connect", "ours"}),
    ):
        figures = found["races"][shape]
        found_of = {(figure["way"], figure["is_cold"]) for figure in figures}
        assert found_of == {(way, is_cold) for way in landed for is_cold in (True, False)}
        assert all(figure["rows"] == rows and figure["cpu"] > 0 and figure["wall"] > 0 for figure in figures)
        assert all("python" not in f["by_process"] for f in figures if f["way"] != "ours")


def test_each_contender_leaves_the_same_state_and_is_read(tmp_path: Path) -> None:
    found = run("bench.peers", tmp_path, shapes=["state"])["state"]
    assert found["changes"]["live"] == 6_000 - found["changes"]["deletes"]
    figures = {(figure["way"], figure["step"]): figure for figure in found["figures"]}
    for way in HOSTS:
        assert all(figures[way, step]["bytes"] > 0 for step in ("load", "batch"))
        assert all(figures[way, step]["cpu"] > 0 for step in ("load", "batch", "spark"))
    assert "equality deletes" in figures["flink_upsert", "pyiceberg"]["refused"]
    assert not any(figure["refused"] for figure in figures.values() if figure["way"] != "flink_upsert")
