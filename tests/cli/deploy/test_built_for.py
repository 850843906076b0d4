"""A release is built for an environment, by what the checkout declares, and uploaded to no other."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from frazil.cli import release as command
from frazil.cli.deploy.program import description, required_description
from frazil.cli.main import app
from frazil.errors import FrazilError
from frazil.release.manifest import Architecture, manifest
from stacks.spec.deployments import DEPLOYMENTS
from tests.stacks.synthesised import release


@pytest.mark.long
def test_label_and_processors_are_those_that_are_declared(root: Path) -> None:
    """All from the checkout's own module, as the command asks it."""
    dev = DEPLOYMENTS["dev"]
    found = required_description("dev", root / "docs")
    assert (found["label"], found["architecture"]) == (dev.emr.label, dev.emr.architecture)
    assert description("others", root) is None
    with pytest.raises(FrazilError, match="it is not declared"):
        required_description("others", root)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, root: Path) -> list[dict[str, Any]]:
    """What is built, without building it; declared is what `stacks` says."""
    monkeypatch.chdir(root)
    told: list[dict[str, Any]] = []

    def built(place: Path, folder: Path, **wanted: Any) -> Any:
        told.append(wanted)
        return release(wanted["architecture"])

    def run(arguments: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
        deployment = DEPLOYMENTS[arguments[-1]]
        said = f'{{"label": "{deployment.emr.label}", "architecture": "{deployment.emr.architecture}"}}'
        return subprocess.CompletedProcess(arguments, 0, said, "")

    monkeypatch.setattr(command, "built", built)
    monkeypatch.setattr(subprocess, "run", run)
    return told


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_a_release_is_built_for_an_environment(name: str, asked: list[dict[str, Any]]) -> None:
    assert CliRunner().invoke(app, ["release", "build", "--for", name]).exit_code == 0
    deployment = DEPLOYMENTS[name]
    assert asked == [{"label_name": deployment.emr.label, "architecture": deployment.emr.architecture}]


def test_an_environment_and_processors_beside_it_are_refused(asked: list[dict[str, Any]]) -> None:
    assert CliRunner().invoke(app, ["release", "build", "--for", "dev", "--architecture", "ARM64"]).exit_code == 2
    assert asked == []


def test_a_release_for_other_processors_is_not_uploaded(
    asked: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is asked of S3: there is none here."""
    place = tmp_path / "dev.json"
    place.write_text(
        '{"version": 1, "name": "dev", "kafka": {"bootstrap": "b:9092", "security": "PLAINTEXT"}, '
        '"catalog": {"type": "glue", "warehouse": "s3://lake/x", "region": "eu-central-1"}, "artifact_bucket": "artifacts"}'
    )
    (tmp_path / "manifest.json").write_bytes(manifest(release(Architecture.X86_64)))
    ended = CliRunner().invoke(app, ["release", "upload", str(place), "--from", str(tmp_path)])
    assert ended.exit_code == 2
    assert "it is for emr-spark-8.1.0 and X86_64, and dev runs emr-spark-8.1.0 on ARM64" in ended.stderr
    assert "frazil release build --for dev" in ended.stderr
