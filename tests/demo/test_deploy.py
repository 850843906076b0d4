"""The complete `make deploy-demo`, if its programs are installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.demo.deploy import FOLDER
from tests.demo.summary import DOCUMENT, REVIEW

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(3600)]


def test_everything_is_deployed_changed_and_destroyed_and_no_record_is_lost_or_doubled(root: Path) -> None:
    missing = [name for name in ("go", "terraform", "node", "npm", "git") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")
    ended = subprocess.run(["make", "deploy-demo"], cwd=root, capture_output=True, text=True, check=False)
    if ended.returncode and "nothing was started" in ended.stdout:
        pytest.skip(ended.stdout[-500:])
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]
    summary = json.loads((root / FOLDER / DOCUMENT).read_text())
    assert summary["outcome"] == "passed"
    assert set(summary["topics"]) == {"flights", "planes", "weather", "fleet"}
    for name, one in summary["topics"].items():
        assert one["produced"] == one["landed"] + one["superseded"] + one["dead_lettered"] == one["read"]
        assert one["is_same"]
        assert one["verified"] == "proven"
        assert (one["spoilt"] == one["dead_lettered"] > 0) is (name != "fleet")
    assert summary["topics"]["fleet"]["superseded"] > 0
    assert summary["produced_meanwhile"] > 1_000, "the producer ran while the release was swapped"
    assert summary["columns"] == {"distance": ["int", "long"], "cancelled": ["none", "boolean"]}
    assert len(set(summary["releases"])) == 3
    assert summary["accepted"]
    assert "given up after 3 runs, generation 2 runs again" in summary["rolled_back"]
    assert summary["moved"]
    assert "SUCCESS" in summary["maintained"]
    assert summary["unchanged"] == ["foundation (deploy the change)", "confluent (move the application)"]
    assert summary["is_destroying_refused"]
    assert summary["left"] == {}
    assert "flights" in (root / FOLDER / REVIEW).read_text()
    assert not (root / FOLDER / "checkout").exists()
    assert not (root / FOLDER / "lake").exists()
