"""What an account has already is used, and neither created nor changed; what an account prescribes is on everything."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.network_plan import GivenNetwork, NetworkPlan
from policies.resource_values import Facts
from policies.resources import read, together
from policies.rules import findings
from stacks.spec.deployments import Access, Deployment, Existing, dev
from stacks.spec.existing import Buckets
from stacks.workflow.deployed import Deployed, Retired
from tests.declaration.problems_of import problems_of
from tests.infra.provider_schema import misfits
from tests.stacks.existing_lake import (
    ACCESS,
    BUCKETS,
    GIVEN,
    KEY,
    NETWORK,
    SUBNETS,
    TAGS,
)
from tests.stacks.stacks.test_compose import refused as refused_together
from tests.stacks.synthesised import EXAMPLE, FLOWING_PIPELINES, TODAY, every_stack, named, resources, synthesised
from tests.stacks.terraform_text import policies_of
from tests.stacks.workflow.test_deployed_guard import guarded
from tests.support.iam_evaluation import Request, evaluate

KNOWN = {
    "spark_application_7070AC67id": "00f1abc2def3gh45",
    "reader-keys_secret_A917B469arn": "arn:aws:secretsmanager:eu-central-1:111111111111:secret:frazil/dev/r",
}
FILE = "arn:aws:s3:::lake-tables/lake/nyc.db/flights/data/1.parquet"
ROLE = f"arn:aws:iam::{dev.account}:role/data/lake/a"
KEY_POLICY = {
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{dev.account}:root"},
            "Action": "kms:*",
            "Resource": "*",
        }
    ]
}
"""The owner of a given key lets the environment's account decide."""
THROUGH_S3 = {"kms:ViaService": f"s3.{dev.region}.amazonaws.com"}


@pytest.fixture(scope="module")
def stacks() -> dict[str, dict[str, Any]]:
    return every_stack(GIVEN, (*EXAMPLE, *FLOWING_PIPELINES))


def may(stack: dict[str, Any], role: str, action: str, resource: str, **context: str) -> bool:
    return evaluate(
        Request(action=action, resource=resource, context=context), policies_of(stack, role, KNOWN)
    ).is_allowed


def encrypts(role: list[dict[str, Any]], context: dict[str, str]) -> bool:
    asked = Request(action="kms:GenerateDataKey", resource=KEY, principal=ROLE, context=dict(context))
    return evaluate(asked, role, KEY_POLICY).is_allowed


def test_of_what_exists_nothing_is_made(stacks: dict[str, dict[str, Any]]) -> None:
    made = {kind for stack in stacks.values() for kind in stack["resource"] if kind.startswith("aws_")}
    assert not {kind for kind in made if kind.startswith(("aws_s3_bucket", "aws_kms", "aws_vpc"))}
    assert not made & {"aws_subnet", "aws_route_table", "aws_nat_gateway", "aws_eip", "aws_security_group"}
    databases = resources(stacks["foundation"], "aws_glue_catalog_database").values()
    assert [each["name"] for each in databases] == ["flow"], "nyc exists"
    assert "boundary" not in json.dumps(sorted(resources(stacks["owner"], "aws_iam_policy")))


def test_jobs_run_in_the_given_network_and_use_the_given_key_and_buckets(stacks: dict[str, dict[str, Any]]) -> None:
    [application] = resources(stacks["foundation"], "aws_emrserverless_application").values()
    assert application["network_configuration"] == {
        "subnet_ids": list(SUBNETS),
        "security_group_ids": list(NETWORK.security_group_ids),
    }
    groups = resources(stacks["foundation"], "aws_cloudwatch_log_group").values()
    assert {each["kms_key_id"] for each in groups} == {KEY}
    objects = resources(stacks["ingestion"], "aws_s3_object").values()
    assert {(each["bucket"], each["kms_key_id"]) for each in objects} == {("lake-artifacts", KEY)}
    [table, _] = resources(stacks["confluent"], "confluent_tableflow_topic").values()
    assert table["byob_aws"]["bucket_name"] == "lake-tableflow"


def test_policies_name_the_given_objects(stacks: dict[str, dict[str, Any]]) -> None:
    job = "frazil-dev-ingest"
    assert may(stacks["ingestion"], job, "s3:PutObject", FILE)
    assert not may(stacks["ingestion"], job, "s3:PutObject", FILE.replace("lake-tables", dev.names.bucket("tables")))
    assert encrypts(policies_of(stacks["ingestion"], job, KNOWN), THROUGH_S3)
    assert not encrypts(policies_of(stacks["ingestion"], job, KNOWN), {})
    assert may(stacks["ingestion"], "frazil-dev-reader", "s3:GetObject", FILE)


def test_in_an_existing_database_policies_name_each_table(stacks: dict[str, dict[str, Any]]) -> None:
    """Its other tables belong to others. In `flow`, which deployment creates, there are none."""
    glue = f"arn:aws:glue:{dev.region}:{dev.account}:table"
    for job in ("frazil-dev-ingest", "frazil-dev-maintain", "frazil-dev-reader"):
        for table, is_ours in {"flights": True, "flights__dead_letters": True, "payroll": False}.items():
            assert may(stacks["ingestion"], job, "glue:GetTable", f"{glue}/nyc/{table}") is is_ours, (job, table)
            data = FILE.replace("flights", table)
            assert may(stacks["ingestion"], job, "s3:GetObject", data) is is_ours, (job, table)


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("s3:PutBucketPolicy", "arn:aws:s3:::lake-tables"),
        ("s3:DeleteBucket", "arn:aws:s3:::lake-artifacts"),
        ("s3:DeleteObjectVersion", "arn:aws:s3:::lake-logs/ingest/1.gz"),
        ("glue:UpdateDatabase", f"arn:aws:glue:{dev.region}:{dev.account}:database/nyc"),
        ("glue:DeleteDatabase", f"arn:aws:glue:{dev.region}:{dev.account}:database/nyc"),
        ("kms:PutKeyPolicy", KEY),
        ("kms:ScheduleKeyDeletion", KEY),
        ("ec2:CreateRoute", f"arn:aws:ec2:{dev.region}:{dev.account}:route-table/rtb-1"),
        ("iam:CreatePolicyVersion", f"arn:aws:iam::{dev.account}:policy/company-boundary"),
    ],
)
def test_the_deployer_changes_nothing_that_is_given(
    stacks: dict[str, dict[str, Any]], action: str, resource: str
) -> None:
    assert GIVEN.is_disposable
    assert not may(stacks["owner"], "deployer-frazil-dev", action, resource)


def test_the_deployer_encrypts_with_the_given_key_through_services_and_puts_documents(
    stacks: dict[str, dict[str, Any]],
) -> None:
    role = policies_of(stacks["owner"], "deployer-frazil-dev", KNOWN)
    assert encrypts(role, THROUGH_S3)
    assert not encrypts(role, {})
    assert may(stacks["owner"], "deployer-frazil-dev", "s3:PutObject", "arn:aws:s3:::lake-artifacts/desired/x.json")


def test_the_deployer_lists_the_given_bucket_of_artifacts_alone(stacks: dict[str, dict[str, Any]]) -> None:
    """`frazil jobs reconcile --watch`, `frazil deploy smoke` and `frazil deploy rotate-keys` list desired states and proofs."""
    for bucket, is_listed in ((BUCKETS.artifacts, True), (BUCKETS.tables, False), (BUCKETS.logs, False)):
        assert may(stacks["owner"], "deployer-frazil-dev", "s3:ListBucket", f"arn:aws:s3:::{bucket}") is is_listed


def test_every_role_and_policy_has_the_path_and_the_given_boundary(stacks: dict[str, dict[str, Any]]) -> None:
    for name, stack in stacks.items():
        for kind in ("aws_iam_role", "aws_iam_policy"):
            for each in resources(stack, kind).values():
                assert each["path"] == "/data/lake/", each["name"]
                if kind == "aws_iam_role" and name != "owner":
                    assert each["permissions_boundary"] == f"arn:aws:iam::{dev.account}:policy/company-boundary"
    role = "deployer-frazil-dev"
    bounded = {"iam:PermissionsBoundary": f"arn:aws:iam::{dev.account}:policy/company-boundary"}
    ours, root = (f"arn:aws:iam::{dev.account}:role{path}frazil-dev-ingest" for path in ("/data/lake/", "/"))
    assert may(stacks["owner"], role, "iam:CreateRole", ours, **bounded)
    assert not may(stacks["owner"], role, "iam:CreateRole", ours)
    assert not may(stacks["owner"], role, "iam:CreateRole", root, **bounded)


def test_every_stack_has_the_tags_beside_the_two_of_frazil(stacks: dict[str, dict[str, Any]]) -> None:
    for name, stack in stacks.items():
        [provider] = stack["provider"]["aws"]
        [tags] = provider["default_tags"]
        assert tags["tags"] == {**TAGS, "frazil:environment": "dev", "frazil:stack": name}


def test_the_stacks_fit_the_providers_schemas_and_the_rules(stacks: dict[str, dict[str, Any]]) -> None:
    assert [misfit for stack in stacks.values() for misfit in misfits(stack)] == []
    reviewed = together(read(stack) for stack in stacks.values())
    assert [str(found) for found in findings(reviewed, Facts(reviewed, TODAY))] == []


def test_the_pages_example_is_a_deployment() -> None:
    page = Path("docs/existing-account.md").read_text()
    declared: dict[str, Any] = {}
    exec(page.partition("```python")[2].partition("```")[0], declared)
    given = {each: declared[each] for each in ("network", "existing")}
    assert not resources(synthesised(named(dev, **given))["foundation"], "aws_s3_bucket")


@pytest.mark.long
def test_each_of_them_may_be_given_alone() -> None:
    def kinds(**given: Any) -> set[str]:
        return {*synthesised(named(dev, **given))["foundation"]["resource"]}

    all_kinds = kinds()
    assert all_kinds - kinds(existing=Existing(key_arn=KEY)) == {"aws_kms_key", "aws_kms_alias"}
    assert all_kinds - kinds(existing=Existing(databases=("nyc",))) == {"aws_glue_catalog_database"}
    assert kinds(existing=Existing(boundary="b")) == all_kinds
    for what, bucket in BUCKETS.given.items():
        stack = synthesised(named(dev, existing=Existing(buckets=Buckets(**{what: bucket}))))["foundation"]
        left = {each["bucket"] for each in resources(stack, "aws_s3_bucket").values()}
        own = {dev.names.bucket(each) for each in ("tables", "artifacts", "logs") if each != what}
        assert left == own
        assert len(resources(stack, "aws_s3_bucket_policy")) == len(own)


def test_in_a_given_vpc_only_the_security_group_of_the_jobs_is_made() -> None:
    network = GivenNetwork(subnet_ids=SUBNETS, vpc_id="vpc-0123456789abcdef0")
    stacks = every_stack(named(dev, network=network, access=ACCESS))
    made = {kind for kind in stacks["foundation"]["resource"] if kind.startswith(("aws_vpc", "aws_sec", "aws_sub"))}
    assert made == {
        "aws_security_group",
        "aws_vpc_security_group_egress_rule",
        "aws_vpc_security_group_ingress_rule",
    }
    [group] = resources(stacks["foundation"], "aws_security_group").values()
    assert group["vpc_id"] == "vpc-0123456789abcdef0"
    role = "deployer-frazil-dev"
    for vpc, is_given in (("vpc-0123456789abcdef0", True), ("vpc-0123456789abcdef1", False)):
        shared = f"arn:aws:ec2:{dev.region}:888888888888:vpc/{vpc}"
        assert may(stacks["owner"], role, "ec2:CreateSecurityGroup", shared) is is_given
        assert not may(stacks["owner"], role, "ec2:DeleteVpc", shared)


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"subnet_ids": ()}, "subnet_ids"),
        ({"subnet_ids": SUBNETS * 2}, "subnet_ids"),
        ({"subnet_ids": ("subnet-1",)}, "subnet_ids[0]"),
        ({"security_group_ids": ()}, "security_group_ids"),
        ({"vpc_id": "vpc-0123456789abcdef0"}, "security_group_ids"),
        ({"security_group_ids": tuple(f"sg-0123456789abcdef{n}" for n in range(6))}, "security_group_ids"),
        ({"security_group_ids": NETWORK.security_group_ids * 2}, "security_group_ids"),
        ({"security_group_ids": (), "vpc_id": "vpc"}, "vpc_id"),
    ],
)
def test_a_network_that_cannot_be_used_is_refused(changed: dict[str, Any], path: str) -> None:
    assert list(problems_of(lambda: replace(NETWORK, **changed))) == [f"given_network.{path}"]


def wrong(**changed: Any) -> list[str]:
    return list(problems_of(lambda: replace(dev, **changed)))


@pytest.mark.parametrize(
    ("tags", "path"),
    [
        ({f"k{number}": "v" for number in range(9)}, "tags"),
        ({"aws:createdBy": "me"}, "tags['aws:createdBy']"),
        ({"Frazil:environment": "prod"}, "tags['Frazil:environment']"),
        ({"": "v"}, "tags['']"),
        ({"k" * 129: "v"}, f"tags['{'k' * 59}… (131 characters)]"),
        ({"k": "v" * 257}, "tags['k']"),
        ({"k": "a;b"}, "tags['k']"),
    ],
)
def test_tags_that_aws_refuses_are_refused(tags: dict[str, str], path: str) -> None:
    assert list(problems_of(lambda: Existing(tags=tags))) == [f"existing.{path}"]


def test_eight_tags_are_allowed_and_one_key_may_not_be_there_twice() -> None:
    assert Existing(tags={f"k{number}": "ä v" for number in range(8)})
    twice = problems_of(lambda: Existing(tags={"Team": "a", "team": "b"}))
    assert list(twice) == ["existing.tags.Team", "existing.tags.team"]


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"region": "us-iso-east-1"}, "region"),
        ({"existing": Existing(key_arn=KEY.replace(dev.region, "us-east-1"))}, "existing.key_arn"),
        ({"existing": Existing(boundary="frazil-dev-boundary")}, "existing.boundary"),
        ({"existing": Existing(boundary=f"arn:aws:iam::{dev.account}:policy/frazil-dev-x/b")}, "existing.boundary"),
        (
            {"existing": Existing(iam_path="/d/", boundary=f"arn:aws:iam::{dev.account}:policy/d/frazil-dev-x/b")},
            "existing.boundary",
        ),
        ({"existing": Existing(boundary="arn:aws:iam::999999999999:policy/b")}, "existing.boundary"),
        ({"existing": Existing(boundary="arn:aws-cn:iam::aws:policy/b")}, "existing.boundary"),
        ({"existing": Existing(buckets=Buckets(logs=dev.names.bucket("state")))}, "existing.buckets.logs"),
        ({"existing": Existing(buckets=Buckets(tables=dev.names.bucket("logs")))}, "existing.buckets.tables"),
        ({"access": Access(readers=("arn:aws-us-gov:iam::111111111111:role/a",))}, "access.readers[0]"),
    ],
)
def test_what_cannot_be_used_here_is_refused(changed: dict[str, Any], path: str) -> None:
    assert wrong(**changed) == [f"deployment.{path}"]


def test_a_bucket_is_given_for_one_purpose() -> None:
    given = Existing(buckets=Buckets(tables="lake", logs="lake"))
    assert wrong(existing=given) == ["deployment.existing.buckets.tables", "deployment.existing.buckets.logs"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("key_arn", "alias/lake"),
        ("key_arn", KEY.replace(":key/", ":alias/")),
        ("boundary", "a/b"),
        ("boundary", "*"),
        ("boundary", "grenze-ä"),
        ("iam_path", "data"),
        ("iam_path", "/data"),
        ("iam_path", "/*/"),
        ("iam_path", "/frazil-dev-x/"),
        ("iam_path", "/data/frazil-dev-x/"),
        ("iam_path", "/dätä/"),
    ],
)
def test_an_object_is_named_as_aws_names_it(field: str, value: str) -> None:
    assert list(problems_of(lambda: Existing(**{field: value}))) == [f"existing.{field}"]


@pytest.mark.parametrize(
    "bucket",
    ["a", "Lake", "lake.tables", "lake*", "s3://lake", "lake-ab12-s3alias", "lake--eun1-az1--x-s3", "xn--lake"],
)
def test_a_bucket_is_given_by_its_name(bucket: str) -> None:
    assert list(problems_of(lambda: Buckets(tables=bucket))) == ["buckets.tables"]


def test_an_existing_database_is_the_namespace_of_a_pipeline() -> None:
    given = named(dev, existing=Existing(databases=("nyc", "nyk")))
    assert refused_together(deployment=given) == ["deployment.existing.databases[1]"]


# ── From one's own to a given object ────────────────────────────────────────────────────────────
@pytest.fixture(scope="module")
def before() -> Deployed:
    return guarded()[0]


def test_a_bucket_that_is_retired_and_given_is_forgotten_with_its_settings(before: Deployed, tmp_path: Path) -> None:
    own = dev.names.bucket("tables")
    given: Deployment = named(dev, existing=Existing(buckets=Buckets(tables=own)))
    retired = [Retired("aws_s3_bucket", own, reason="the platform team has it now")]
    after, stacks = guarded(before, deployment=given, retired=retired, folder=tmp_path)
    foundation = stacks["dev-foundation"]
    assert own not in {each["bucket"] for each in resources(foundation, "aws_s3_bucket").values()}
    forgotten = {each["from"].partition(".")[0] for each in foundation["removed"]}
    assert {"aws_s3_bucket", "aws_s3_bucket_policy", "aws_s3_bucket_lifecycle_configuration"} <= forgotten
    assert not any(each["lifecycle"]["destroy"] for each in foundation["removed"])
    assert {each.name for each in after.retired} == {own}
    assert isinstance(given.network, NetworkPlan)
