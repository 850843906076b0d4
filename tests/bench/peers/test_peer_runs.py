"""A small complete run: each peer lands a topic in Avro and one in JSON, cold and warm, and each landing is counted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.fill import ROOT


@pytest.mark.long
@pytest.mark.e2e
def test_each_peer_lands_what_was_produced_and_has_figures(tmp_path: Path) -> None:
    chosen = ["--shape", "nested_avro", "--shape", "light_json"]
    chosen += [part for way in ("flink", "flink_bare", "connect", "ours") for part in ("--way", way)]
    small = ["--scale", "0.02", "--rounds", "1", "--heap", "1g", "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "bench.peers", *chosen, *small],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "results.json").read_text())
    for shape, rows, ways in (
        ("nested_avro", 20_000, {"flink", "flink_bare", "connect", "ours"}),
        ("light_json", 12_000, {"flink", "connect", "ours"}),
    ):
        figures = found["races"][shape]
        assert {(figure["way"], figure["is_cold"]) for figure in figures} == {
            (w, c) for w in ways for c in (True, False)
        }
        assert all(figure["rows"] == rows and figure["cpu"] > 0 and figure["wall"] > 0 for figure in figures)
        assert all("python" not in f["by_process"] for f in figures if f["way"] != "ours")
