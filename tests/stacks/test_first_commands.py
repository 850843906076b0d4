"""An empty account becomes a deployed environment by the commands of docs/deploy.md, in a project that `frazil init` made.

AWS is moto, Confluent is its stand-in. The project's `infra_app.py` has two edits beside those of a user: it imports the checkout,
as no wheel is installed, and S3 is asked by path, as this machine has no name for each bucket.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from stacks.spec.deployments import DEPLOYMENTS
from tests.support.standin import Terraform
from tests.support.standin_cloud import cloud

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(1800)]

ACCOUNT = "111111111111"
DEV = replace(DEPLOYMENTS["dev"], account=ACCOUNT)
BY_PATH = """
import atexit, json, os, pathlib, sys


def by_path():
    out = os.environ.get("CDKTF_OUTDIR")
    for file in pathlib.Path(out, "stacks").glob("*/cdk.tf.json") if out and len(sys.argv) == 1 else ():
        stack = json.loads(file.read_text())
        stack["terraform"]["backend"]["s3"]["use_path_style"] = True
        stack["provider"]["aws"][0]["s3_use_path_style"] = True
        for state in stack.get("data", {}).get("terraform_remote_state", {}).values():
            state["config"]["use_path_style"] = True
        file.write_text(json.dumps(stack))


atexit.register(by_path)
"""


@dataclass(frozen=True, kw_only=True)
class Project:
    """A project, and the variables of a shell that is logged in to the account."""

    folder: Path
    settings: dict[str, str]
    endpoint: str

    def frazil(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "frazil.cli.main", *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=self.settings, capture_output=True, text=True, timeout=900, check=False
        )

    def client(self, service: str) -> Any:
        keys = [self.settings[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")]
        return boto3.session.Session(*keys, region_name=DEV.region).client(service, endpoint_url=self.endpoint)


@pytest.fixture
def project(root: Path, tmp_path: Path, terraform: Terraform) -> Iterator[Project]:
    (tmp_path / "cloud").mkdir()
    with cloud(root, tmp_path / "cloud", terraform) as made:
        keys = made.aws("sts").assume_role(RoleArn=f"arn:aws:iam::{ACCOUNT}:role/owner", RoleSessionName="first")
        given = keys["Credentials"]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FRAZIL_")}
        settings = {
            **kept,
            **terraform.settings,
            **made.settings,
            "AWS_ACCESS_KEY_ID": given["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": given["SecretAccessKey"],
            "AWS_SESSION_TOKEN": given["SessionToken"],
            "AWS_ENDPOINT_URL_S3": made.endpoint,
            "PYTHONPATH": f"{root}{os.pathsep}{root / 'jobs'}",
        }
        folder = tmp_path / "lake"
        project = Project(folder=folder, settings=settings, endpoint=made.endpoint)
        begun = replace(project, folder=tmp_path).frazil("init", "lake", "--kafka", "local", "--aws", "--yes")
        assert begun.returncode == 0, begun.stderr
        file = folder / "infra_app.py"
        text = file.read_text().replace("frazil_deploy.", "")
        principals = f'access=Access(deployers=("arn:aws:iam::{ACCOUNT}:role/ci",)), is_disposable=True'
        assert "is_disposable=True" in text
        text = text.replace("import SMALL, Confluent", "import SMALL, Access, Confluent")
        file.write_text(BY_PATH + text.replace("is_disposable=True", principals, 1))
        yield project


def test_an_empty_account_is_deployed_by_two_commands_which_can_be_repeated(project: Project) -> None:
    ended = project.frazil("deploy", "bootstrap", "dev", "--check")
    assert ended.returncode == 4, ended.stdout + ended.stderr
    ended = project.frazil("deploy", "bootstrap", "dev", "--yes")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "dev-owner: applied" in ended.stdout
    assert (project.folder / "deployed" / "dev.json").is_file()
    assert project.frazil("deploy", "bootstrap", "dev", "--check").returncode == 0
    refused = project.frazil("deploy", "up", "dev", "--release", "none")
    assert (refused.returncode, "Give --yes" in refused.stdout) == (1, True), refused.stdout + refused.stderr
    ended = project.frazil("deploy", "up", "dev", "--release", "none", "--yes")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = [line for line in ended.stdout.splitlines() if line.startswith("dev-")]
    assert [line.partition(":")[0] for line in lines] == ["dev-foundation", "dev-confluent", "dev-ingestion"]
    assert all(": applied +" in line for line in lines), ended.stdout
    deployed = json.loads((project.folder / "deployed" / "dev.json").read_text())
    assert deployed["environment"] == "dev"
    buckets = [each["Name"] for each in project.client("s3").list_buckets()["Buckets"]]
    assert {DEV.names.bucket("state"), DEV.names.bucket("artifacts"), DEV.names.bucket("tables")} <= set(buckets)
    again = project.frazil("deploy", "up", "dev", "--release", "none", "--yes")
    assert again.returncode == 0, again.stdout + again.stderr
    assert [line for line in again.stdout.splitlines() if line.startswith("dev-")] == [
        f"dev-{what}: nothing changes" for what in ("foundation", "confluent", "ingestion")
    ]
    assert_keys_are_replaced(project)


def assert_keys_are_replaced(project: Project) -> None:
    """The jobs' keys are replaced by one command, whose plans have no danger. Later deployments keep the new ones."""

    def secret() -> dict[str, str]:
        stored = project.client("secretsmanager").get_secret_value(SecretId=DEV.names.secret("confluent-reader"))
        fields: dict[str, str] = json.loads(stored["SecretString"])
        return fields

    def existing() -> set[str]:
        organization = json.loads(Path(project.settings["CONFLUENT_STANDIN_STATE"]).read_text())
        return {id_ for id_, key in organization["api_key"].items() if "-reader-" in key["display_name"]}

    before = secret()
    rotated = project.frazil("deploy", "rotate-keys", "dev", "--yes")
    assert rotated.returncode == 0, rotated.stdout + rotated.stderr
    steps = [line.partition(", plan ")[0] for line in rotated.stdout.splitlines() if line.startswith("dev-")]
    assert steps == [
        "dev-confluent: applied +2 ~0 -0 ±1",
        "dev-confluent: applied +0 ~0 -2 ±0",
        "dev-confluent: nothing changes",
    ]
    now = secret()
    assert not set(before.values()) & set(now.values())
    assert existing() == {now["kafka_key"], now["registry_key"]}
    assert json.loads((project.folder / "deployed" / "dev.json").read_text())["key_step"] == 3
    again = project.frazil("deploy", "up", "dev", "--release", "none", "--yes")
    assert "dev-confluent: nothing changes" in again.stdout, again.stdout + again.stderr
