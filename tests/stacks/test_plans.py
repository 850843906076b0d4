"""dev, planned by Terraform and by `cdktf diff` with the account, region, state bucket and lock that it declares.

AWS is moto, in which Terraform is a role of each environment's account; Confluent is its stand-in, the broker is real. What is
planned is what was synthesised, but for one setting: S3 is asked by path, as this machine has no name for each bucket.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from frazil.release.manifest import manifest
from stacks.spec.deployments import DEPLOYMENTS
from stacks.workflow.deployed import Deployed, write
from tests.stacks.synthesised import STACKS, release
from tests.support.standin import Terraform
from tests.support.standin_cloud import Cloud, cloud

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(1800)]

DEV = DEPLOYMENTS["dev"]


@dataclass(frozen=True, kw_only=True)
class Account:
    """An environment in its own account of the local AWS, with nothing in it but the bucket of Terraform's states."""

    cloud: Cloud
    terraform: Terraform

    def stack(self, what: str) -> Path:
        return self.cloud.folder / "cdktf.out" / "stacks" / f"dev-{what}"

    def run(self, what: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command, *more = arguments
        return self.terraform.run(self.stack(what), command, "-input=false", "-no-color", *more)

    def plan(self, what: str) -> tuple[int, str]:
        """Exit code (0 nothing, 1 an error, 2 changes), and what is said."""
        if not (self.stack(what) / ".terraform").exists():
            self.terraform.prepare(self.stack(what))
        ended = self.run(what, "plan", "-detailed-exitcode", "-out=plan")
        return ended.returncode, " ".join((ended.stdout + ended.stderr).replace("│", " ").split())

    def diff(self, what: str) -> str:
        """What `cdktf diff` says, of the stacks as they were synthesised."""
        cdktf = self.cloud.root / "node_modules" / ".bin" / "cdktf"
        if not cdktf.exists():
            pytest.skip("CDKTF's command line is not installed: .ci/setup-deploy does it")
        shutil.copy(self.cloud.root / "cdktf.json", self.cloud.folder)
        ended = subprocess.run(
            [cdktf, "diff", f"dev-{what}", "--skip-synth", "--skip-provider-lock", "--no-color"],
            cwd=self.cloud.folder,
            env={**os.environ, **self.terraform.settings, "CI": "1", "DISABLE_VERSION_CHECK": "1"},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def planned(self, what: str) -> dict[str, Any]:
        """The plan, as JSON."""
        told: dict[str, Any] = json.loads(self.terraform.run(self.stack(what), "show", "-json", "plan").stdout)
        return told

    def apply(self, what: str) -> None:
        """Apply what was planned."""
        ended = self.run(what, "apply", "plan")
        assert ended.returncode == 0, ended.stderr


@pytest.fixture
def account(root: Path, tmp_path: Path, terraform: Terraform) -> Iterator[Account]:
    """The environment, synthesised for deployment."""
    with cloud(root, tmp_path, terraform) as everything:
        synthesise(everything)
        role = f"arn:aws:iam::{DEV.account}:role/deployer"
        keys = everything.aws("sts").assume_role(RoleArn=role, RoleSessionName="plan")["Credentials"]
        given = (keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
        s3 = boto3.session.Session(*given, region_name=DEV.region).client("s3", endpoint_url=everything.endpoint)
        location = {"LocationConstraint": DEV.region}
        s3.create_bucket(Bucket=DEV.names.bucket("state"), CreateBucketConfiguration=location)
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        settings = {
            **terraform.settings,
            **everything.settings,
            **dict(zip(names, given, strict=True)),
            "AWS_ENDPOINT_URL_S3": everything.endpoint,
        }
        yield Account(cloud=everything, terraform=replace(terraform, settings=settings))


def synthesise(cloud: Cloud) -> None:
    """Write the environment's stacks, and have S3 asked by path."""
    told = cloud.folder / "release.json"
    told.write_bytes(manifest(release(DEV.emr.architecture)))
    write(cloud.folder / "deployed" / "dev.json", Deployed(environment="dev"))
    asked = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", str(cloud.folder)),
        "CDKTF_OUTDIR": str(cloud.folder / "cdktf.out"),
        "FRAZIL_ENVIRONMENTS": "dev",
        "FRAZIL_PIPELINES": "stacks/example.py",
        "FRAZIL_RELEASE": str(told),
        "FRAZIL_DEPLOYED": str(cloud.folder / "deployed"),
    }
    command = [sys.executable, "-m", "stacks.workflow.app"]
    subprocess.run(command, cwd=cloud.root, env=asked, check=True, timeout=120)
    for what in STACKS:
        by_path(cloud.folder / "cdktf.out" / "stacks" / f"dev-{what}")


def by_path(folder: Path) -> None:
    """Have S3 asked by path."""
    file = folder / "cdk.tf.json"
    stack = json.loads(file.read_text())
    stack["terraform"]["backend"]["s3"]["use_path_style"] = True
    stack["provider"]["aws"][0]["s3_use_path_style"] = True
    for state in stack.get("data", {}).get("terraform_remote_state", {}).values():
        state["config"]["use_path_style"] = True
    file.write_text(json.dumps(stack))


def test_each_stack_can_be_planned_when_those_before_it_stand_and_not_sooner(account: Account) -> None:
    code, said = account.plan("confluent")
    assert (code, "Unable to find remote state" in said) == (1, True), said
    assert "0 to change, 0 to destroy" in account.diff("foundation")
    assert account.plan("foundation")[0] == 2
    account.apply("foundation")
    code, said = account.plan("ingestion")
    assert (code, "Unable to find remote state" in said) == (1, True), said
    assert "0 to change, 0 to destroy" in account.diff("confluent")
    assert account.plan("confluent")[0] == 2
    account.apply("confluent")
    assert account.plan("confluent")[0] == 0
    assert "No changes" in account.diff("confluent")
    assert "0 to change, 0 to destroy" in account.diff("ingestion")
    assert account.plan("ingestion")[0] == 2
    addresses = {each["address"] for each in account.planned("ingestion")["resource_changes"]}
    assert "aws_s3_object.desired" in addresses
