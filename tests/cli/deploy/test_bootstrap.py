"""`frazil deploy bootstrap`, on moto: an empty account is prepared once, and a repeated command changes nothing.

The program that deploys the owner stack is replaced; `tests/stacks/test_first_commands.py` applies that stack.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner, Result

from frazil.cli.main import app
from frazil.clients.aws_account import Account
from stacks.spec.deployments import DEPLOYMENTS, Access, Existing
from stacks.workflow.describe import described
from tests.standin.aws.s3 import patch_s3
from tests.support.deploying_project import describe, make_project

DEV = replace(
    DEPLOYMENTS["dev"],
    account="123456789012",  # moto's
    access=Access(deployers=("arn:aws:iam::123456789012:role/ci",)),
)
BUCKET = DEV.names.bucket("state")
LOGS = """
with open("log", "a") as log:
    log.write(json.dumps([*arguments, os.environ["FRAZIL_RELEASE"]]) + "\\n")
"""


@dataclass
class Empty:
    """An empty account, and the project that declares a deployment in it."""

    folder: Path

    def bootstrap(self, *options: str) -> Result:
        return CliRunner().invoke(app, ["deploy", "bootstrap", "dev", *options])

    def client(self, service: str) -> Any:
        return boto3.client(service, region_name=DEV.region)

    def log(self) -> list[Any]:
        log = self.folder / "log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def buckets(self) -> list[str]:
        return [each["Name"] for each in self.client("s3").list_buckets()["Buckets"]]


@pytest.fixture
def empty(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Empty]:
    make_project(folder, LOGS)
    describe(folder, **described(DEV, "none"))
    patch_s3()
    monkeypatch.setattr(Account, "cores", lambda account: 4.0)  # moto has no quotas of EMR Serverless
    with mock_aws():
        yield Empty(folder)


def test_an_empty_account_is_prepared_and_a_second_command_changes_nothing(empty: Empty) -> None:
    ended = empty.bootstrap("--yes")
    assert ended.exit_code == 0, ended.output
    assert [line.rpartition(": ")[2] for line in ended.stdout.splitlines()[:4]] == ["made"] * 4
    s3, key = empty.client("s3"), empty.client("kms").describe_key(KeyId=f"alias/{DEV.names.state_key}")["KeyMetadata"]
    assert s3.get_bucket_versioning(Bucket=BUCKET)["Status"] == "Enabled"
    assert all(s3.get_public_access_block(Bucket=BUCKET)["PublicAccessBlockConfiguration"].values())
    [rule] = s3.get_bucket_encryption(Bucket=BUCKET)["ServerSideEncryptionConfiguration"]["Rules"]
    assert rule["ApplyServerSideEncryptionByDefault"] == {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key["Arn"]}
    assert empty.client("kms").get_key_rotation_status(KeyId=key["KeyId"])["KeyRotationEnabled"]
    sids = [each["Sid"] for each in json.loads(s3.get_bucket_policy(Bucket=BUCKET)["Policy"])["Statement"]]
    assert "RefuseWithoutTls" in sids
    assert (
        ended.stdout.splitlines()[4]
        == "quota: 4 vCPU of EMR Serverless, and the deployment needs 8: request an increase"
    )
    [[accepted, *options]] = empty.log()
    assert accepted.startswith("--accept-danger=the owner stack is permissions")
    assert options == ["--yes", "--", "dev", "owner", "none"]
    again = empty.bootstrap("--yes")
    assert again.exit_code == 0, again.output
    assert [line.rpartition(": ")[2] for line in again.stdout.splitlines()[:4]] == ["exists"] * 4
    assert len(empty.client("kms").list_keys()["Keys"]) == 1


def test_a_check_makes_nothing(empty: Empty) -> None:
    ended = empty.bootstrap("--check")
    assert (ended.exit_code, empty.buckets(), empty.log()) == (4, [], [])
    assert "boundary: missing" in ended.stdout
    empty.bootstrap("--yes")
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
    empty.client("iam").create_policy(PolicyName=DEV.names.boundary, PolicyDocument=json.dumps(policy))
    assert empty.bootstrap("--check").exit_code == 0


def test_a_bucket_without_its_settings_gets_them_after_an_interruption(empty: Empty) -> None:
    place = {"LocationConstraint": DEV.region}
    empty.client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration=place)
    ended = empty.bootstrap("--yes")
    assert (ended.exit_code, f"bucket {BUCKET}: exists" in ended.stdout) == (0, True)
    assert empty.client("s3").get_bucket_versioning(Bucket=BUCKET)["Status"] == "Enabled"


def test_another_account_is_refused(empty: Empty) -> None:
    other = described(replace(DEV, account="999999999999", access=Access()), "none")
    describe(empty.folder, **other)
    ended = empty.bootstrap("--yes")
    assert (ended.exit_code, empty.buckets()) == (2, [])
    assert "the credentials are of account 123456789012" in ended.stderr


def test_a_lost_file_of_deployed_objects_is_not_replaced(empty: Empty) -> None:
    empty.bootstrap("--yes")
    empty.client("s3").put_object(Bucket=BUCKET, Key="dev/foundation.tfstate", Body=b"{}")
    ended = empty.bootstrap("--yes")
    assert (ended.exit_code, len(empty.log())) == (2, 1)
    assert "Restore the committed file" in ended.stderr


def test_a_key_of_an_interrupted_attempt_gets_its_alias(empty: Empty) -> None:
    """CreateKey and CreateAlias are two calls: between them, the key has its tag only."""
    kms = empty.client("kms")
    tags = {"staging": "staging", "dev": "dev"}
    keys = {
        name: kms.create_key(Tags=[{"TagKey": "frazil:state", "TagValue": tag}])["KeyMetadata"]["KeyId"]
        for name, tag in tags.items()
    }
    ended = empty.bootstrap("--yes")
    assert ended.exit_code == 0, ended.output
    assert kms.describe_key(KeyId=f"alias/{DEV.names.state_key}")["KeyMetadata"]["KeyId"] == keys["dev"]
    assert kms.get_key_rotation_status(KeyId=keys["dev"])["KeyRotationEnabled"]
    assert len(kms.list_keys()["Keys"]) == 2
    policy = json.loads(kms.get_key_policy(KeyId=keys["dev"], PolicyName="default")["Policy"])
    assert [each["Sid"] for each in policy["Statement"]] == [
        each["Sid"] for each in described(DEV, "none")["state_key_policy"]["Statement"]
    ]


def test_the_file_of_deployed_objects_is_looked_for_in_its_folder(
    empty: Empty, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty.bootstrap("--yes")
    empty.client("s3").put_object(Bucket=BUCKET, Key="dev/foundation.tfstate", Body=b"{}")
    (empty.folder / "kept").mkdir()
    (empty.folder / "kept" / "dev.json").write_text("{}")
    monkeypatch.setenv("FRAZIL_DEPLOYED", "kept")
    ended = empty.bootstrap("--yes")
    assert (ended.exit_code, len(empty.log())) == (0, 2), ended.output


def test_without_an_owner_stack_the_boundary_must_exist(empty: Empty) -> None:
    describe(empty.folder, **described(replace(DEV, access=Access()), "none"))
    ended = empty.bootstrap("--yes")
    assert (ended.exit_code, "Declare access.deployers" in ended.stderr) == (2, True)


def test_a_boundary_that_is_given_must_exist_and_no_owner_stack_makes_it(empty: Empty) -> None:
    given = replace(DEV, existing=Existing(boundary="company"))
    describe(empty.folder, **described(given, "none"))
    ended = empty.bootstrap("--yes")
    assert (ended.exit_code, "policy/company does not exist" in ended.stderr) == (2, True)
    assert empty.log() == []
    statement = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    empty.client("iam").create_policy(PolicyName="company", PolicyDocument=policy)
    assert empty.bootstrap("--yes").exit_code == 0
