"""What an account answers that moto does not have: quotas, refusals, no credentials. `tests/cli/deploy/test_bootstrap.py` has the rest."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.exceptions import NoCredentialsError
from botocore.stub import Stubber

from frazil.clients.aws_account import Account
from frazil.errors import AccountUnavailable

REGION = "eu-central-1"


def stubbed(service: str) -> tuple[Account, Stubber]:
    client = boto3.client(service, region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x")
    return Account(lambda name: client, REGION), Stubber(client)


def quota(name: str, value: float) -> dict[str, Any]:
    return {"ServiceCode": "emr-serverless", "QuotaName": name, "Value": value}


def test_the_quota_of_cores_is_found_by_its_name() -> None:
    account, stub = stubbed("service-quotas")
    stub.add_response("list_service_quotas", {"Quotas": [quota("Applications", 50), quota("Max concurrent vCPUs", 16)]})
    with stub:
        assert account.cores() == 16
    account, stub = stubbed("service-quotas")
    stub.add_client_error("list_service_quotas", "AccessDeniedException")
    with stub:
        assert account.cores() is None, "a quota that cannot be read stops nothing"


def test_a_refusal_names_the_action_and_the_remedy() -> None:
    account, stub = stubbed("iam")
    stub.add_client_error("get_policy", "AccessDenied")
    with stub, pytest.raises(AccountUnavailable, match="AWS refused GetPolicy: AccessDenied") as refused:
        account.has_policy("arn:aws:iam::123456789012:policy/boundary-frazil-dev")
    assert "owner" in refused.value.do


def test_a_bucket_of_another_account_is_an_error() -> None:
    account, stub = stubbed("s3")
    stub.add_client_error("head_bucket", "403")
    with stub, pytest.raises(AccountUnavailable, match="HeadBucket"):
        account.has_bucket("b")


def test_without_credentials_nothing_is_made() -> None:
    def client(service: str) -> Any:
        raise NoCredentialsError

    with pytest.raises(AccountUnavailable, match="no valid AWS credentials"):
        Account(client, REGION).number()
