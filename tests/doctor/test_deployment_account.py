"""The checks of a deployment's account, on moto: an empty one fails with remedies, a prepared one passes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from moto import mock_aws

from frazil.cli.deploy.account import parts
from frazil.clients.aws_account import Account, GivenObjects, account_clients
from frazil.doctor.check_result import examined
from frazil.doctor.deployment_account import steps
from stacks.spec.deployments import DEPLOYMENTS
from stacks.workflow.describe import described
from tests.standin.aws.s3 import patch_s3

DEV = replace(DEPLOYMENTS["dev"], account="123456789012")  # moto's


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setattr(Account, "cores", lambda account: 16.0)  # moto has no quotas of EMR Serverless
    patch_s3()
    with mock_aws():
        yield Account(account_clients(DEV.region), DEV.region)


def results(found_by: Account, **others: Any) -> dict[str, str]:
    declared, given = {**described(DEV, "none"), **others}, GivenObjects(account_clients(DEV.region))
    found = examined(steps(declared, found_by, given, "dev"), seconds=60, total_seconds=120)
    return {check.name: f"{check.result}: {check.remedy or check.found}" for check in found}


def test_an_empty_account_fails_with_the_command_that_prepares_it(account: Account) -> None:
    found = results(account)
    for name in ("state bucket", "boundary", "service role"):
        assert found[name] == "failed: Run frazil deploy bootstrap dev as the account's owner"
    assert found["zones"].startswith("ok: 3")
    assert found["given objects"] == "ok: none"
    given = {**described(DEV, "none")["given"], "buckets": {"tables": "lake-tables"}}
    found = results(account, given=given, has_given_boundary=True)
    assert found["given objects"].startswith("failed: Give another one")
    assert found["boundary"] == "failed: Correct existing.boundary, or create it"


def test_a_prepared_account_passes(account: Account) -> None:
    for part in parts(account, described(DEV, "none"), "dev"):
        part.make()
    statement = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    boto3.client("iam").create_policy(PolicyName=DEV.names.boundary, PolicyDocument=policy)
    found = results(account)
    assert [found[name].partition(":")[0] for name in ("account", "state bucket", "boundary", "service role")] == [
        "ok"
    ] * 4
    assert found["quota"] == "ok: 16 vCPU, and the deployment declares 8"
    boto3.client("s3").delete_bucket_policy(Bucket=DEV.names.bucket("state"))
    assert results(account)["state bucket"].startswith("warning: ")


def test_a_quota_that_is_too_low_fails(account: Account) -> None:
    assert results(account, cores=80)["quota"] == "failed: Request an increase in Service Quotas"


@pytest.mark.long
def test_lake_formation_warns_if_it_controls_new_databases(account: Account) -> None:
    client = boto3.client("lakeformation", region_name=DEV.region)
    everyone = {"Principal": {"DataLakePrincipalIdentifier": "IAM_ALLOWED_PRINCIPALS"}, "Permissions": ["ALL"]}
    client.put_data_lake_settings(DataLakeSettings={"CreateDatabaseDefaultPermissions": [everyone]})
    assert results(account)["Lake Formation"].startswith("ok: ")
    client.put_data_lake_settings(DataLakeSettings={"CreateDatabaseDefaultPermissions": []})
    assert results(account)["Lake Formation"].startswith("warning: ")
    assert results(account, lake_formation=True)["Lake Formation"].startswith("ok: ")


def test_nothing_else_is_asked_in_another_account(account: Account) -> None:
    found = results(account, account="999999999999")
    assert found.pop("account") == "failed: Log in to that account"
    assert set(found.values()) == {"skipped: not checked: account failed"}


@pytest.mark.long
def test_keys_of_jobs_that_are_old_are_reported_with_the_command_that_replaces_them(account: Account) -> None:
    def found(days: float, **others: Any) -> str:
        now = time.time() + days * 86_400
        each = examined(
            steps(
                {**described(DEV, "none"), **others},
                account,
                GivenObjects(account_clients(DEV.region)),
                "dev",
                now=lambda: now,
            ),
            seconds=60,
            total_seconds=120,
        )
        return next(f"{check.result}: {check.found}; {check.remedy}" for check in each if check.name == "keys of jobs")

    assert found(0).startswith("ok: not stored yet")
    client = boto3.client("secretsmanager", region_name=DEV.region)
    client.create_secret(Name="frazil/dev/confluent-reader", SecretString="{}")
    assert found(89.5).startswith("ok: 89 days old")
    assert found(91.5) == "warning: 91 days old, more than 90; Run frazil deploy rotate-keys dev"
    assert found(91.5, has_own_keys=False).endswith("; Replace the keys in the given secret")
    client.put_secret_value(SecretId="frazil/dev/confluent-reader", SecretString='{"kafka_key": "b"}')
    assert found(0.5).startswith("ok: 0 days old"), "a new version begins anew"
