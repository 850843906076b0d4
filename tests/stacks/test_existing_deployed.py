"""An account that has network, key, buckets, database and boundary already, deployed to stand-ins by Terraform and destroyed.

The tests follow each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from frazil.declaration import Pipeline, Table, Topic
from infra.confluent.managed_topic import ManagedTopic
from infra.network_plan import GivenNetwork
from infra.tf import App
from stacks.spec.deployments import Deployment, Existing, Workgroup
from stacks.spec.existing import Buckets
from stacks.stacks.compose import compose
from tests.policies.test_deployers_calls import RECORDED
from tests.stacks.synthesised import release
from tests.support.standin import Terraform
from tests.support.standin_cloud import LOCAL, Cloud, cloud

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(1800)]

STACKS = ("foundation", "confluent", "ingestion")
BUCKETS = Buckets(tables="lake-tables", artifacts=LOCAL.names.bucket("artifacts"), logs="lake-logs")
GOVERNED = replace(
    LOCAL,
    existing=Existing(iam_path="/data/", tags={"cost-centre": "4711"}),
    access=replace(LOCAL.access, lake_formation=True, athena_workgroup=Workgroup(most_scanned_gb=100)),
)
PIPELINES = (Pipeline(topic=Topic("flights", value="avro"), table=Table("nyc.flights")),)
TOPICS = (ManagedTopic("flights", partitions=1),)


@pytest.fixture(scope="module")
def account(root: Path, tmp_path_factory: pytest.TempPathFactory, terraform: Terraform) -> Iterator[Cloud]:
    with cloud(root, tmp_path_factory.mktemp("existing"), terraform) as made, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", made.endpoint)
        yield made


def declare(account: Cloud, deployment: Deployment, *, is_destroyed: bool = False) -> None:
    app = App(outdir=str(account.folder / "cdktf.out"))
    compose(
        app,
        deployment,
        PIPELINES,
        TOPICS,
        text_of=str,
        release=release(deployment.emr.architecture),
        is_named_for_destruction=is_destroyed,
    )
    app.synth()


def destroyed(account: Cloud, deployment: Deployment, *stacks: str) -> None:
    declare(account, deployment, is_destroyed=True)
    for what in stacks:
        account.apply(what)
    for what in reversed(stacks):
        ended = account.run(what, "destroy", "-auto-approve")
        assert ended.returncode == 0, ended.stderr


def test_the_log_of_an_own_networks_connections_is_made_and_destroyed(account: Cloud) -> None:
    logged = replace(GOVERNED, network=replace(LOCAL.network, flow_logs=True))
    declare(account, logged)
    account.apply("foundation")
    assert account.plan("foundation")[0] == 0
    [log] = account.aws("ec2").describe_flow_logs()["FlowLogs"]
    assert log["DeliverLogsPermissionArn"] == f"arn:aws:iam::{LOCAL.account}:role/data/frazil-local-flow-logs"
    assert {"Key": "cost-centre", "Value": "4711"} in log["Tags"]
    destroyed(account, logged, "foundation")
    assert not account.aws("ec2").describe_flow_logs()["FlowLogs"]


@pytest.fixture(scope="module")
def existing(account: Cloud) -> Deployment:
    """The deployment that uses what the account has, all of which is made here."""
    ec2, s3 = account.aws("ec2"), account.aws("s3")
    vpc = ec2.create_vpc(CidrBlock="10.30.0.0/20")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.30.{number}.0/24")["Subnet"]["SubnetId"] for number in (1, 2)
    ]
    for bucket in BUCKETS.given.values():
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": LOCAL.region})
    account.aws("glue").create_database(DatabaseInput={"Name": "nyc"})
    any_statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}
    any_policy = json.dumps({"Version": "2012-10-17", "Statement": [any_statement]})
    boundary = account.aws("iam").create_policy(PolicyName="company", Path="/owner/", PolicyDocument=any_policy)
    return replace(
        GOVERNED,
        network=GivenNetwork(subnet_ids=tuple(subnets), vpc_id=vpc),
        existing=Existing(
            boundary=boundary["Policy"]["Arn"],
            key_arn=account.aws("kms").create_key()["KeyMetadata"]["Arn"],
            buckets=BUCKETS,
            databases=("nyc",),
            tags=GOVERNED.existing.tags,  # the stand-in keeps those of a log group that was deleted
        ),
    )


@pytest.fixture(scope="module")
def deployed(account: Cloud, existing: Deployment) -> Cloud:
    declare(account, existing)
    for what in STACKS:
        account.apply(what)
    return account


@pytest.mark.parametrize("what", STACKS)
def test_a_second_plan_is_empty(deployed: Cloud, what: str) -> None:
    code, said = deployed.plan(what)
    assert code == 0, said


def test_destroying_leaves_what_was_given(deployed: Cloud, existing: Deployment) -> None:
    destroyed(deployed, existing, *STACKS)
    buckets = {each["Name"] for each in deployed.aws("s3").list_buckets()["Buckets"]}
    assert set(BUCKETS.given.values()) <= buckets
    assert {each for each in buckets if each.startswith(LOCAL.names.prefix)} == {BUCKETS.artifacts}
    assert deployed.aws("glue").get_database(Name="nyc")
    key = deployed.aws("kms").describe_key(KeyId=existing.existing.key_arn)["KeyMetadata"]
    assert key["KeyState"] == "Enabled"
    assert isinstance(existing.network, GivenNetwork)
    left = deployed.aws("ec2").describe_subnets(SubnetIds=list(existing.network.subnet_ids))["Subnets"]
    assert len(left) == len(existing.network.subnet_ids)
    groups = deployed.aws("ec2").describe_security_groups(
        Filters=[{"Name": "vpc-id", "Values": [str(existing.network.vpc_id)]}]
    )
    assert [each["GroupName"] for each in groups["SecurityGroups"]] == ["default"]
    assert deployed.aws("iam").get_policy(PolicyArn=existing.existing.boundary)


def test_no_more_was_asked_of_aws_than_is_recorded(deployed: Cloud) -> None:
    """The recorded calls are what the deployer's role is held against."""
    assert deployed.asked <= set(RECORDED), json.dumps(sorted(deployed.asked - set(RECORDED)))
