"""Existing objects that a deployment is given, on moto: each wrong kind is named before anything is created."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from moto import mock_aws

from frazil.clients.aws_account import GivenObjects, account_clients
from frazil.declaration import InvalidDeclaration
from frazil.doctor.deployment_account import names, refuse_wrong
from infra.network_plan import GivenNetwork
from stacks.spec.deployments import Deployment, Existing
from stacks.spec.existing import Buckets
from stacks.workflow.describe import described
from tests.doctor.test_deployment_account import DEV
from tests.policies.example import policy
from tests.stacks.synthesised import named

ELSEWHERE = "us-west-2"


@cache
def _client_of(region: str) -> Callable[[str], Any]:
    """Return clients that are made once: to make one takes longer than all its calls."""
    return cache(account_clients(region, keys=("testing", "testing")))


@dataclass
class Account:
    """An account with a network, a key, buckets and a database, which a deployment is given."""

    client: Callable[[str], Any]

    def __post_init__(self) -> None:
        ec2 = self.client("ec2")
        self.vpc, self.other_vpc = (ec2.create_vpc(CidrBlock=f"10.{n}.0.0/16")["Vpc"]["VpcId"] for n in (1, 2))
        self.subnets = tuple(self.subnet(self.vpc, f"10.1.{n}.0/24") for n in (1, 2))
        self.group = self.security_group(self.vpc)
        self.key = self.client("kms").create_key(KeyUsage="ENCRYPT_DECRYPT")["KeyMetadata"]["Arn"]
        for bucket in ("lake-tables", "lake-artifacts"):
            self.bucket(bucket, DEV.region)
        self.client("glue").create_database(DatabaseInput={"Name": "nyc"})

    def subnet(self, vpc: str, cidr: str) -> str:
        return str(self.client("ec2").create_subnet(VpcId=vpc, CidrBlock=cidr)["Subnet"]["SubnetId"])

    def security_group(self, vpc: str) -> str:
        made = self.client("ec2").create_security_group(GroupName="jobs", Description="jobs", VpcId=vpc)
        return str(made["GroupId"])

    def bucket(self, name: str, region: str) -> None:
        place = {"CreateBucketConfiguration": {"LocationConstraint": region}} if region != "us-east-1" else {}
        _client_of(region)("s3").create_bucket(Bucket=name, **place)

    def deployment(self, **changed: Any) -> Deployment:
        network = {"subnet_ids": self.subnets, "security_group_ids": (self.group,), **changed.pop("network", {})}
        buckets = Buckets(**{"tables": "lake-tables", "artifacts": "lake-artifacts", **changed.pop("buckets", {})})
        existing = {"key_arn": self.key, "buckets": buckets, "databases": ("nyc",), **changed}
        made: Deployment = named(DEV, network=GivenNetwork(**network), existing=Existing(**existing))
        return made

    def found(self, **changed: Any) -> list[str]:
        """Return what is wrong, if this is given instead."""
        try:
            refuse_wrong(described(self.deployment(**changed), "none"), GivenObjects(self.client))
        except InvalidDeclaration as invalid:
            return [f"{each.path}: {each.what}" for each in invalid.problems]
        return []


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield Account(_client_of(DEV.region))


def test_objects_that_can_be_used_pass_and_are_listed(account: Account) -> None:
    assert account.found() == []
    assert account.found(network={"security_group_ids": (), "vpc_id": account.vpc}) == []
    wanted = [account.key, "lake-tables", "lake-artifacts", "nyc", *account.subnets, account.group]
    assert names(described(account.deployment(), "none")) == wanted
    assert names(described(DEV, "none")) == []


def test_a_bucket_of_another_region_or_of_none(account: Account) -> None:
    account.bucket("elsewhere", ELSEWHERE)
    account.bucket("oldest", "us-east-1")
    assert account.found(buckets={"tables": "elsewhere", "artifacts": "missing"}) == [
        f"existing.buckets.tables: the bucket elsewhere is in {ELSEWHERE}, the deployment is in {DEV.region}",
        "existing.buckets.artifacts: the bucket missing does not exist",
    ]
    [found] = account.found(buckets={"logs": "oldest"})
    assert "is in us-east-1" in found


@pytest.mark.long
def test_a_key_that_cannot_encrypt(account: Account) -> None:
    kms = account.client("kms")
    missing = account.key.rpartition("/")[0] + "/11111111-2222-4333-8444-555555555555"
    assert account.found(key_arn=missing) == [f"existing.key_arn: the key {missing} does not exist"]
    kms.disable_key(KeyId=account.key.rpartition("/")[2])
    assert account.found() == [f"existing.key_arn: the key {account.key} is Disabled"]
    signing = kms.create_key(KeyUsage="SIGN_VERIFY", KeySpec="RSA_2048")["KeyMetadata"]["Arn"]
    [found] = account.found(key_arn=signing)
    assert "is for SIGN_VERIFY with RSA_2048" in found


def test_a_database_that_is_missing_or_elsewhere(account: Account) -> None:
    glue = account.client("glue")
    for name, location in (("here", "s3://lake-tables/lake/here.db/"), ("there", "s3://others/there")):
        glue.create_database(DatabaseInput={"Name": name, "LocationUri": location})
    assert account.found(databases=("nyc", "here", "there", "missing")) == [
        "existing.databases[2]: the Glue database there is at s3://others/there, which no role may access",
        "existing.databases[3]: the Glue database missing does not exist",
    ]


def test_a_network_that_does_not_fit_together(account: Account) -> None:
    other, missing = account.subnet(account.other_vpc, "10.2.1.0/24"), "subnet-0123456789abcdef0"
    [found] = account.found(network={"subnet_ids": (*account.subnets, other)})
    assert found.startswith("network.subnet_ids: they are of several VPCs")
    assert account.found(network={"subnet_ids": (account.subnets[0], missing)}) == [
        f"network.subnet_ids: the subnet {missing} does not exist in this region"
    ]
    foreign = account.security_group(account.other_vpc)
    assert account.found(network={"security_group_ids": (foreign, "sg-0123456789abcdef0")}) == [
        f"network.security_group_ids: the security group {foreign} is of {account.other_vpc}, the subnets are of {account.vpc}",
        "network.security_group_ids: the security group sg-0123456789abcdef0 does not exist in this region",
    ]
    assert account.found(network={"security_group_ids": (), "vpc_id": account.other_vpc}) == [
        f"network.vpc_id: the subnets are of {account.vpc}, not of {account.other_vpc}"
    ]


def test_everything_is_found_at_once(account: Account) -> None:
    assert (
        len(
            account.found(
                buckets={"logs": "missing"}, databases=("missing",), network={"subnet_ids": ("subnet-01234567",)}
            )
        )
        == 3
    )


@pytest.mark.long
def test_the_deployer_may_read_what_is_asked(account: Account) -> None:
    asked: set[str] = set()

    def noting(service: str) -> Any:
        made = account_clients(DEV.region, keys=("testing", "testing"))(service)
        made.meta.events.register("before-call", lambda model, **_: asked.add(f"{service}:{model.name}"))
        return made

    refuse_wrong(described(account.deployment(), "none"), GivenObjects(noting))
    rights = policy("deployer", given_buckets=["lake"], given_keys=[account.key], given_databases=["nyc"])
    granted = {
        (each["Sid"], action)
        for each in rights["Statement"]
        if each["Effect"] == "Allow"
        for action in ([each["Action"]] if isinstance(each["Action"], str) else each["Action"])
    }
    assert {f"{service}:{action}" for service, action in (each.split(":") for each in asked)} == {
        *("s3:GetBucketLocation", "kms:DescribeKey", "glue:GetDatabase"),
        *("ec2:DescribeSubnets", "ec2:DescribeSecurityGroups"),
    }
    for sid, action in (
        ("LocateGivenBuckets", "s3:GetBucketLocation"),
        ("DescribeGivenKeys", "kms:DescribeKey"),
        ("ReadGivenDatabases", "glue:GetDatabase"),
        ("Describe", "ec2:DescribeSubnets"),
        ("Describe", "ec2:DescribeSecurityGroups"),
    ):
        assert (sid, action) in granted
