"""The entry point of synthesis, as `cdktf.json` runs it: and what it refuses."""

from __future__ import annotations

import json
import os
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from frazil.control.release import Architecture, manifest
from stacks import app
from tests.stacks.synthesised import release

CLASHING = """
from frazil.declaration import Pipeline, Table, Topic, ValueFormat
pipelines = [Pipeline(topic=Topic(n, value_format=ValueFormat.AVRO), table=Table("s.t"), name=n) for n in ("a", "b", "c")]
"""
MOST_SECONDS = 15  # of the processor, imports included


def test_one_environment_is_synthesised_without_credentials_within_seconds(root: Path, tmp_path: Path) -> None:
    told = tmp_path / "manifest.json"
    told.write_bytes(manifest(release(Architecture.ARM64)))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(
        [sys.executable, "-m", "stacks.app"],
        cwd=root,
        # Nothing else: no credentials, no AWS.
        env={
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", str(tmp_path)),
            "CDKTF_OUTDIR": str(tmp_path / "cdktf.out"),
            "FRAZIL_ENVIRONMENTS": "prod",
            "FRAZIL_RELEASE": str(told),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.returncode == 0, ended.stderr
    stacks = tmp_path / "cdktf.out" / "stacks"
    assert {each.name for each in stacks.iterdir()} == {"prod-foundation", "prod-confluent", "prod-ingestion"}
    ingestion = json.loads((stacks / "prod-ingestion" / "cdk.tf.json").read_text())
    assert release(Architecture.ARM64).key in ingestion["resource"]["aws_s3_object"]["desired"]["content"]
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    assert spent < MOST_SECONDS


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What is told on stderr when it ends with 2; nothing is written then."""
    monkeypatch.chdir(tmp_path)

    def told(**settings: str) -> str:
        assert app.main(settings) == 2
        assert not list(tmp_path.rglob("cdk.tf.json"))
        out, err = capsys.readouterr()
        assert out == ""
        return err

    return told


def test_an_environment_that_is_none_is_told_with_those_that_are(refused: Callable[..., str]) -> None:
    told = refused(FRAZIL_ENVIRONMENTS="dev,production")
    assert told == "error: there is no environment production: dev, staging, prod, local\n"


def test_every_problem_of_the_pipelines_is_told(refused: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "pipelines.py"
    file.write_text(CLASHING)
    told = refused(FRAZIL_ENVIRONMENTS="dev", FRAZIL_PIPELINES=str(file))
    assert told.count("a table has one writer") == 3


@pytest.mark.parametrize("setting", ["FRAZIL_PIPELINES", "FRAZIL_RELEASE"])
def test_a_file_that_is_not_there_is_an_error_of_one_line(refused: Callable[..., str], setting: str) -> None:
    assert refused(FRAZIL_ENVIRONMENTS="dev", **{setting: "none"}).count("\n") == 1


def test_the_cdk_runs_this_module(root: Path) -> None:
    told = json.loads((root / "cdktf.json").read_text())
    assert shlex.split(told["app"])[1:] == ["-m", "stacks.app"]
    assert told["sendCrashReports"] == "false"
