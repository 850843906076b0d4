"""The entry point of synthesis, as `cdktf.json` runs it: a process of its own."""

from __future__ import annotations

import json
import os
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from frazil.control.release import Architecture, manifest
from tests.stacks.synthesised import release

CLASHING = """
from frazil.declaration import Pipeline, Table, Topic, ValueFormat
pipelines = [Pipeline(topic=Topic(n, value_format=ValueFormat.AVRO), table=Table("s.t"), name=n) for n in ("a", "b", "c")]
"""
MOST_SECONDS = 15  # of the processor, imports included


def synth(root: Path, out: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run it with nothing in its environment but PATH and the settings: no credentials, no AWS."""
    return subprocess.run(
        [sys.executable, "-m", "stacks.app"],
        cwd=root,
        env={"PATH": os.environ["PATH"], "HOME": str(out), "CDKTF_OUTDIR": str(out / "cdktf.out"), **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def test_one_environment_is_synthesised_without_credentials_within_seconds(root: Path, tmp_path: Path) -> None:
    told = tmp_path / "manifest.json"
    told.write_bytes(manifest(release(Architecture.ARM64)))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = synth(root, tmp_path, FRAZIL_ENVIRONMENTS="prod", FRAZIL_RELEASE=str(told))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.returncode == 0, ended.stderr
    stacks = tmp_path / "cdktf.out" / "stacks"
    assert {each.name for each in stacks.iterdir()} == {"prod-foundation", "prod-confluent", "prod-ingestion"}
    ingestion = json.loads((stacks / "prod-ingestion" / "cdk.tf.json").read_text())
    assert release(Architecture.ARM64).key in ingestion["resource"]["aws_s3_object"]["desired"]["content"]
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    assert spent < MOST_SECONDS


def test_an_environment_that_is_none_is_told_with_those_that_are(root: Path, tmp_path: Path) -> None:
    ended = synth(root, tmp_path, FRAZIL_ENVIRONMENTS="dev,production")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "error: there is no environment production: dev, staging, prod, local\n"


def test_every_problem_of_the_pipelines_is_told_and_nothing_is_written(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "pipelines.py"
    file.write_text(CLASHING)
    ended = synth(root, tmp_path, FRAZIL_ENVIRONMENTS="dev", FRAZIL_PIPELINES=str(file))
    assert ended.returncode == 2
    assert ended.stderr.count("a table has one writer") == 3
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "cdktf.out" / "stacks").exists()


@pytest.mark.parametrize("setting", ["FRAZIL_PIPELINES", "FRAZIL_RELEASE"])
def test_a_file_that_is_not_there_is_an_error_of_one_line(root: Path, tmp_path: Path, setting: str) -> None:
    ended = synth(root, tmp_path, FRAZIL_ENVIRONMENTS="dev", **{setting: str(tmp_path / "none")})
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)


def test_the_cdk_runs_this_module(root: Path) -> None:
    told = json.loads((root / "cdktf.json").read_text())
    assert shlex.split(told["app"])[1:] == ["-m", "stacks.app"]
    assert told["sendCrashReports"] == "false"
