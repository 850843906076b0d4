"""`frazil release check`: one release for all deployments, by its digest; and the upload before a document was fetched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner, Result

from frazil.cli.main import app
from frazil.release.manifest import Release
from tests.cli.deploy.test_up import built
from tests.support.deploying_project import describe, make_project
from tests.support.rollout_world import BUCKET


@dataclass
class Project:
    folder: Path
    release: Release

    def declare(self, **changes: dict[str, Any]) -> None:
        known = {
            "label": self.release.label,
            "architecture": self.release.architecture,
            "release": "release/manifest.json",
            "artifact_bucket": BUCKET,
            "trusted_keys": [],
        }
        for name in ("dev", "staging", "prod"):
            describe(self.folder, name, **{**known, **changes.get(name, {})})

    def check(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, ["release", "check", "dev", "staging", "prod", *arguments])


@pytest.fixture
def project(folder: Path) -> Project:
    """A project that commits the manifest; the files of the release are elsewhere."""
    release = built(folder / "dist")
    (folder / "release").mkdir()
    (folder / "release" / "manifest.json").write_bytes((folder / "dist" / "manifest.json").read_bytes())
    make_project(folder)
    made = Project(folder, release)
    made.declare()
    return made


def test_one_release_for_all_has_one_digest(project: Project) -> None:
    ended = project.check("--from", "dist", "--digest", project.release.digest, "--json")
    assert ended.exit_code == 0, ended.output
    told = json.loads(ended.stdout)
    assert (told["digest"], told["stored"]) == (project.release.digest, f"frazil-{project.release.digest[:16]}")
    assert project.check().exit_code == 0, "without the files, the manifest alone is compared"


def test_without_a_release_there_is_no_digest(project: Project) -> None:
    project.declare(**{name: {"release": "none"} for name in ("dev", "staging", "prod")})
    ended = project.check("--json")
    assert (ended.exit_code, json.loads(ended.stdout)["digest"]) == (0, None)
    assert "no release is declared" in project.check().stdout


@pytest.mark.parametrize("given", [("--from", "dist"), ("--digest", "0" * 64)])
def test_a_release_that_is_given_where_none_is_declared_is_1(project: Project, given: tuple[str, str]) -> None:
    """A workflow that names the release in one of its places only would upload files that it never compared."""
    project.declare(**{name: {"release": "none"} for name in ("dev", "staging", "prod")})
    ended = project.check(*given)
    assert (ended.exit_code, "none is declared" in ended.stderr) == (1, True), ended.output


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"prod": {"release": "none"}}, "they run several releases"),
        ({"prod": {"architecture": "ARM64"}}, "prod runs emr-spark-8.1.0 on ARM64"),
        ({name: {"release": "elsewhere/manifest.json"} for name in ("dev", "staging", "prod")}, "the file is not the manifest of a release"),
    ],
)  # fmt: skip
def test_another_release_or_other_processors_for_one_of_them_is_2(
    project: Project, changes: dict[str, Any], said: str
) -> None:
    project.declare(**changes)
    ended = project.check()
    assert (ended.exit_code, said in ended.stderr) == (2, True), ended.output


def test_another_digest_or_another_file_is_1(project: Project) -> None:
    ended = project.check("--digest", "0" * 64)
    assert (ended.exit_code, project.release.digest in ended.stderr) == (1, True), ended.output
    (project.folder / "dist" / "ingest.py").write_bytes(b"changed")
    ended = project.check("--from", "dist")
    assert (ended.exit_code, "ingest.py" in ended.stderr) == (1, True), ended.output


def test_a_release_without_a_trusted_signature_is_1(project: Project) -> None:
    project.declare(prod={"trusted_keys": ["a" * 64]})
    ended = project.check("--from", "dist")
    assert (ended.exit_code, "no trusted key has signed it" in ended.stderr) == (1, True), ended.output


def test_an_environment_that_is_not_declared_is_2(project: Project) -> None:
    assert CliRunner().invoke(app, ["release", "check", "nowhere"]).exit_code == 2
    assert CliRunner().invoke(app, ["release", "check"]).exit_code == 2


@pytest.fixture
def s3() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket=BUCKET)
        yield client


def test_a_declared_environment_takes_a_release_before_its_document_was_fetched(project: Project, s3: Any) -> None:
    ended = CliRunner().invoke(app, ["release", "upload", "staging", "--from", "dist", "--json"])
    assert ended.exit_code == 0, ended.output
    told = json.loads(ended.stdout)
    assert (told["new"], told["release"]) == (9, project.release.key)
    assert json.loads(s3.get_object(Bucket=BUCKET, Key=project.release.key)["Body"].read())
    ended = CliRunner().invoke(app, ["release", "upload", "nowhere", "--from", "dist"])
    assert (ended.exit_code, "it does not exist" in ended.stderr) == (2, True), ended.output
