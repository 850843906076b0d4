"""dev, staging and prod, planned by Terraform and by `cdktf diff` with the account, region, state bucket and lock they declare.

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
from stacks.spec.deployments import DEPLOYMENTS, Deployment
from stacks.workflow.deployed import Deployed, write
from tests.stacks.synthesised import STACKS, release
from tests.support.standin import Terraform
from tests.support.standin_cloud import Cloud, cloud

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(1800)]

OURS = ("flights", "weather", "planes")
"""The topics that the example's deployment makes."""


@pytest.fixture(scope="module")
def everything(root: Path, tmp_path_factory: pytest.TempPathFactory, terraform: Terraform) -> Iterator[Cloud]:
    with cloud(root, tmp_path_factory.mktemp("planned"), terraform) as made:
        yield made


@dataclass(frozen=True, kw_only=True)
class Account:
    """An environment in its own account of the local AWS, with nothing in it but the bucket of Terraform's states."""

    deployment: Deployment
    cloud: Cloud
    terraform: Terraform

    def stack(self, what: str) -> Path:
        return self.cloud.folder / "cdktf.out" / "stacks" / f"{self.deployment.name}-{what}"

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
            [cdktf, "diff", f"{self.deployment.name}-{what}", "--skip-synth", "--skip-provider-lock", "--no-color"],
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

    def client(self, service: str) -> Any:
        """The local AWS, as Terraform's role in the account."""
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        keys = [self.terraform.settings[name] for name in names]
        made = boto3.session.Session(*keys, region_name=self.deployment.region)
        return made.client(service, endpoint_url=self.cloud.endpoint)

    def apply(self, what: str) -> None:
        """Apply what was planned."""
        ended = self.run(what, "apply", "plan")
        assert ended.returncode == 0, ended.stderr


@pytest.fixture(params=["dev", "staging", "prod"], scope="module")
def account(request: pytest.FixtureRequest, everything: Cloud) -> Iterator[Account]:
    """The environment, synthesised for deployment; what it makes on the broker goes afterwards."""
    deployment = DEPLOYMENTS[request.param]
    synthesise(everything, deployment)
    keys = everything.aws("sts").assume_role(
        RoleArn=f"arn:aws:iam::{deployment.account}:role/deployer", RoleSessionName="plan"
    )["Credentials"]
    told = {
        **everything.settings,
        "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
        "AWS_SESSION_TOKEN": keys["SessionToken"],
        "AWS_ENDPOINT_URL_S3": everything.endpoint,
    }
    terraform = replace(everything.terraform, settings={**everything.terraform.settings, **told})
    here = replace(everything, terraform=terraform)
    made = Account(deployment=deployment, cloud=here, terraform=terraform)
    made.client("s3").create_bucket(
        Bucket=deployment.names.bucket("state"), CreateBucketConfiguration={"LocationConstraint": deployment.region}
    )
    everything.organization_file.write_text(json.dumps(others_cluster(deployment)))
    yield made
    everything.organization_file.unlink()
    if topics := set(OURS) & everything.partitions().keys():
        everything.delete_topics(*sorted(topics))


def synthesise(cloud: Cloud, deployment: Deployment) -> None:
    """Write the environment's stacks, and have S3 asked by path."""
    told = cloud.folder / "release.json"
    told.write_bytes(manifest(release(deployment.emr.architecture)))
    write(cloud.folder / "deployed" / f"{deployment.name}.json", Deployed(environment=deployment.name))
    asked = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", str(cloud.folder)),
        "CDKTF_OUTDIR": str(cloud.folder / "cdktf.out"),
        "FRAZIL_ENVIRONMENTS": deployment.name,
        "FRAZIL_PIPELINES": "stacks/example.py",
        "FRAZIL_RELEASE": str(told),
        "FRAZIL_DEPLOYED": str(cloud.folder / "deployed"),
    }
    command = [sys.executable, "-m", "stacks.workflow.app"]
    subprocess.run(command, cwd=cloud.root, env=asked, check=True, timeout=120)
    for what in STACKS:
        by_path(cloud.folder / "cdktf.out" / "stacks" / f"{deployment.name}-{what}")


def by_path(folder: Path) -> None:
    """Have S3 asked by path."""
    file = folder / "cdk.tf.json"
    stack = json.loads(file.read_text())
    stack["terraform"]["backend"]["s3"]["use_path_style"] = True
    stack["provider"]["aws"][0]["s3_use_path_style"] = True
    for state in stack.get("data", {}).get("terraform_remote_state", {}).values():
        state["config"]["use_path_style"] = True
    file.write_text(json.dumps(stack))


def others_cluster(deployment: Deployment) -> dict[str, Any]:
    """The organization in which somebody else has made the environment and cluster that this deployment names, if any."""
    wanted = deployment.confluent
    if wanted.is_managed:
        return {}
    there = {"cloud": "AWS", "region": deployment.region, "environment": [{"id": wanted.environment_id}]}
    return {
        "environment": {str(wanted.environment_id): {"display_name": "shared"}},
        "kafka_cluster": {str(wanted.cluster_id): {"display_name": "shared", "availability": "HIGH", **there}},
        "schema_registry_cluster": {"lsrc-shared": {"display_name": "shared", "package": "ADVANCED", **there}},
    }


def values(told: dict[str, Any], address: str) -> dict[str, Any]:
    """What Terraform has read for a data source, when it planned."""
    [found] = [each for each in told["prior_state"]["values"]["root_module"]["resources"] if each["address"] == address]
    read: dict[str, Any] = found["values"]
    return read


def test_each_stack_can_be_planned_when_those_before_it_stand_and_not_sooner(account: Account) -> None:
    code, said = account.plan("confluent")
    assert (code, "Unable to find remote state" in said) == (1, True), said
    assert "0 to change, 0 to destroy" in account.diff("foundation")
    assert account.plan("foundation")[0] == 2
    account.apply("foundation")
    code, said = account.plan("ingestion")
    assert (code, "Unable to find remote state" in said) == (1, True), said
    if not account.deployment.confluent.is_managed:
        assert_a_cluster_that_is_not_there_fails_the_plan(account)
    assert "0 to change, 0 to destroy" in account.diff("confluent")
    assert account.plan("confluent")[0] == 2
    if not account.deployment.confluent.is_managed:
        assert_what_exists_was_read(account)
    account.apply("confluent")
    assert account.plan("confluent")[0] == 0
    assert "No changes" in account.diff("confluent")
    assert "0 to change, 0 to destroy" in account.diff("ingestion")
    assert account.plan("ingestion")[0] == 2
    addresses = {each["address"] for each in account.planned("ingestion")["resource_changes"]}
    assert "aws_s3_object.desired" in addresses


def assert_what_exists_was_read(account: Account) -> None:
    """Environment, cluster and registry are Confluent's to tell: they are read while planning, and nothing makes them."""
    told, wanted = account.planned("confluent"), account.deployment.confluent
    environment = values(told, "data.confluent_environment.environment")
    assert environment["resource_name"].endswith(f"/environment={wanted.environment_id}")
    cluster = values(told, "data.confluent_kafka_cluster.cluster")
    assert cluster["bootstrap_endpoint"] == f"SASL_SSL://{account.cloud.world.bootstrap}"
    assert cluster["rbac_crn"].endswith(f"/environment={wanted.environment_id}/cloud-cluster={wanted.cluster_id}")
    registry = values(told, "data.confluent_schema_registry_cluster.registry")
    assert (registry["id"], registry["rest_endpoint"]) == ("lsrc-shared", account.cloud.world.registry_url)
    made = {each["type"] for each in told["resource_changes"] if each["change"]["actions"] == ["create"]}
    assert not made & {"confluent_environment", "confluent_kafka_cluster"}


def assert_a_cluster_that_is_not_there_fails_the_plan(account: Account) -> None:
    file = account.cloud.organization_file
    whole = file.read_text()
    file.write_text(json.dumps({**json.loads(whole), "kafka_cluster": {}}))
    code, said = account.plan("confluent")
    file.write_text(whole)
    assert code == 1
    assert f'there is no confluent_kafka_cluster "{account.deployment.confluent.cluster_id}"' in said
