"""The entry point and the command: a document and an environment in, one line or row an action out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from frazil.local.toolchain import class_path
from tests.support.committed_table import Stock
from tests.support.documents import written
from tests.support.shop import SETTINGS

pytestmark = pytest.mark.spark
MAINTAIN = Path(__file__).parents[2] / "jobs" / "maintain.py"


def ran(command: list[str], folder: Path, failpoints: str = "") -> subprocess.CompletedProcess[str]:
    jars = class_path.driver_jars(aws=False)
    return subprocess.run(
        command,
        cwd=folder,
        env={
            **os.environ,
            **class_path.variables(jars, os.environ),
            "COLUMNS": "200",
            "NO_COLOR": "1",
            "FRAZIL_FAILPOINTS": failpoints,
        },
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def entry_point(stock: Stock, folder: Path, *arguments: str, failpoints: str = "") -> subprocess.CompletedProcess[str]:
    _, pipelines, _, environment = written(folder, [stock.pipeline], stock.environment)
    command = [sys.executable, str(MAINTAIN), "--document", pipelines, "--environment", environment, "--once"]
    for key, value in SETTINGS.items():
        command += ["--setting", f"{key}={value}"]
    return ran([*command, "--master", "local[2]", *arguments], folder, failpoints)


@pytest.mark.long
def test_the_entry_point_keeps_tables_and_writes_json_lines(stock: Stock, tmp_path: Path) -> None:
    stock.land(7)
    ended = entry_point(stock, tmp_path, "--closed-hours", "0", "--grace-hours", "0")
    assert ended.returncode == 0, ended.stderr
    lines: list[dict[str, Any]] = [json.loads(line) for line in ended.stderr.splitlines() if line.startswith("{")]
    told = {line["action"]: line for line in lines if line.get("event") == "maintained"}
    assert {action: line["ended"] for action, line in told.items()} == {
        "compact": "done",
        "carry": "done",
        "expire": "done",
        "orphans": "dry_run",
    }
    assert told["compact"]["files_removed"] == 7
    assert len(stock.live_files()) == 1
    stock.assert_nothing_changed()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("--pipeline", "nobody"), "there is no pipeline nobody"), (("--orphan-days", "1"), "at least 3 days")],
)
def test_wrong_arguments_end_it_before_anything_is_done(
    stock: Stock, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    before = stock.metadata()
    ended = entry_point(stock, tmp_path, *arguments)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert stock.metadata() == before


@pytest.mark.long
def test_the_command_tells_a_dry_run_as_json_and_changes_nothing(stock: Stock, tmp_path: Path) -> None:
    stock.land(7)
    before = stock.metadata()
    options = written(tmp_path, [stock.pipeline], stock.environment)
    command = [str(Path(sys.executable).parent / "frazil"), "maintain", stock.pipeline.name, "--dry-run", "--json"]
    ended = ran([*command, *options, "--memory", "1g"], tmp_path)
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)["pipelines"][stock.pipeline.name]
    assert [one["action"] for one in told] == ["compact", "carry", "expire", "orphans"]
    assert told[0]["ended"] == "dry_run"
    assert stock.metadata() == before


def test_the_command_needs_to_be_told_which_pipelines(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from frazil.declaration import *\n"
        'pipelines = [Pipeline(topic=Topic("orders", value="avro"), table=Table("shop.orders"))]\n'
    )
    command = [str(Path(sys.executable).parent / "frazil"), "maintain", "--pipelines", "mine.py"]
    ended = ran(command, tmp_path)
    assert ended.returncode == 2
    assert "no pipeline is named" in ended.stderr
