"""The files of `frazil metrics write`, as their programs read them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.metrics.dashboard import PANELS, dashboard
from frazil.metrics.metric_registry import METRICS
from frazil.metrics.notifications import Receiver
from tests.support.debian import program


def test_the_dashboard_shows_metrics_of_the_registry() -> None:
    used = set(re.findall(r"\bfrazil_[a-z_]+", " ".join(panel.query for panel in PANELS)))
    names = {metric.name for metric in METRICS}
    assert used <= names
    # What is not on the dashboard: values that others are computed of, and rare ones.
    hidden = {"skipped", "late", "masked"}
    of_records = {f"frazil_records_{name}_total" for name in hidden}
    others = {
        "frazil_read_bytes_total",
        "frazil_commits_total",
        *(f"frazil_last_{what}_timestamp_seconds" for what in ("look", "rejected", "event")),
    }
    assert names - used == of_records | others | {"frazil_table_rows", "frazil_run_info"}


def test_the_panels_fill_the_dashboard_without_an_overlap() -> None:
    places = [panel["gridPos"] for panel in json.loads(dashboard())["panels"]]
    cells = [(p["x"] + x, p["y"] + y) for p in places for x in range(p["w"]) for y in range(p["h"])]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


@pytest.mark.parametrize("receiver", list(Receiver))
def test_alertmanager_takes_the_configuration_of_each_receiver(receiver: Receiver, tmp_path: Path) -> None:
    written = CliRunner().invoke(app, ["metrics", "write", str(tmp_path), "--to", receiver.value, "--freshness", "60"])
    assert written.exit_code == 0, written.output
    assert "frazil_freshness_seconds > bool 60" in (tmp_path / "frazil-rules.yml").read_text()
    json.loads((tmp_path / "frazil-dashboard.json").read_text())
    command = [program("amtool"), "check-config", str(tmp_path / "alertmanager.yml")]
    checked = subprocess.run(command, text=True, capture_output=True, timeout=60, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("")
    written = CliRunner().invoke(app, ["metrics", "write", str(place)])
    assert (written.exit_code, "cannot be written" in written.stderr) == (2, True)
    listed = CliRunner().invoke(app, ["metrics", "list", "--json"])
    assert [one["name"] for one in json.loads(listed.stdout)["metrics"]] == [metric.name for metric in METRICS]
