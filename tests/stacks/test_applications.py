"""Two applications beside each other: what a deployment declares while its jobs move, and before and after it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from frazil.declaration import InvalidDeclaration, Spark
from frazil.release.manifest import Architecture
from frazil.rollout.desired import parse_desired
from infra.capacity import Capacity
from infra.network_plan import NetworkPlan
from policies.resource_values import Facts
from policies.resources import read, together
from policies.rules import findings
from stacks.spec.deployments import Access, Application, Emr, dev
from stacks.workflow.describe import described
from tests.stacks.stacks.test_ingestion import KNOWN as ADDRESSES
from tests.stacks.synthesised import EXAMPLE, TODAY, named, resources, stacks_of, synthesised
from tests.stacks.terraform_text import policies_of, worked_out
from tests.support.iam_evaluation import Request, evaluate

OLD, NEW = "00f1old", "00f1new"
KNOWN = {
    **{key: value for key, value in ADDRESSES.items() if not key.startswith("spark_")},
    "kms_keykey_F64E54E4arn": "arn:aws:kms:eu-central-1:111111111111:key/1",
    "reader-keys_secret_A917B469arn": "arn:aws:secretsmanager:eu-central-1:111111111111:secret:frazil/dev/r",
    "spark_application_7070AC67id": OLD,
    "spark-b_application_D820914Cid": NEW,
}
OPERATORS = ("arn:aws:iam::111111111111:role/o",)
BEFORE = named(dev, access=Access(reconcilers=OPERATORS))
FORMER = Application(capacity=dev.runs.capacity)
LARGER = replace(dev.runs, capacity=Capacity(cores=16, memory_gb=64, disk_gb=400))
MOVING = named(BEFORE, emr=Emr(application="b", former=(FORMER,)), runs=LARGER)
AFTER = named(MOVING, emr=Emr(application="b"))


@pytest.fixture(scope="module")
def moving() -> dict[str, dict[str, Any]]:
    return synthesised(MOVING, (replace(EXAMPLE[0], engine=Spark(group="a")), EXAMPLE[1]))


def applications(stack: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return resources(stack, "aws_emrserverless_application")


def test_the_first_application_keeps_its_address_while_another_one_exists_beside_it(
    moving: dict[str, dict[str, Any]],
) -> None:
    [(address, first)] = applications(stacks_of("dev")["foundation"]).items()
    both = applications(moving["foundation"])
    assert both.pop(address) == first, "nothing of it changes: AWS would refuse that"
    [(_, second)] = both.items()
    assert second["name"] == f"{first['name']}-b"
    assert second["maximum_capacity"]["cpu"] == "16 vCPU"
    assert second["network_configuration"] == first["network_configuration"]
    assert applications(synthesised(AFTER)["foundation"]).keys() == both.keys()


def test_runs_start_on_the_new_application_only(moving: dict[str, dict[str, Any]]) -> None:
    for what, job in (("ingestion", "ingest"), ("ingestion-a", "ingest-a")):
        stack = moving[what]
        content = resources(stack, "aws_s3_object")["desired"]["content"]
        desired = parse_desired(worked_out(content, stack, KNOWN).encode())
        assert (desired.job, desired.application) == (job, NEW)
        inputs = [
            worked_out(each["target"]["input"], stack, KNOWN)
            for each in resources(stack, "aws_scheduler_schedule").values()
        ]
        assert [json.loads(each)["ApplicationId"] for each in inputs if "ApplicationId" in each] == [NEW]


def test_both_applications_may_use_the_roles_and_both_call_the_reconciler(moving: dict[str, dict[str, Any]]) -> None:
    for what in ("ingestion", "ingestion-a"):
        stack = moving[what]
        roles = {each["name"]: each for each in resources(stack, "aws_iam_role").values()}
        jobs = [
            each for name, each in roles.items() if "-reconcile" not in name and name.rpartition("-")[2] != "scheduler"
        ]
        assert len(jobs) == 2
        for role in jobs:
            trust = worked_out(role["assume_role_policy"], stack, KNOWN)
            for application in (OLD, NEW, "00f1other"):
                arn = f"arn:aws:emr-serverless:eu-central-1:111111111111:/applications/{application}"
                asked = Request(
                    action="sts:AssumeRole",
                    resource="arn:aws:iam::111111111111:role/it",
                    principal="emr-serverless.amazonaws.com",
                    context={"aws:SourceAccount": "111111111111", "aws:SourceArn": arn},
                )
                assert evaluate(asked, [], json.loads(trust)).is_allowed is (application != "00f1other")
        [rule] = resources(stack, "aws_cloudwatch_event_rule").values()
        pattern = json.loads(worked_out(rule["event_pattern"], stack, KNOWN))
        assert pattern["detail"]["applicationId"] == [NEW, OLD]


@pytest.mark.parametrize("role", ["reconcile-ingest", "reconcile-ingest-a", "reconciler", "scheduler"])
def test_runs_of_both_applications_can_be_found_ended_and_started(moving: dict[str, dict[str, Any]], role: str) -> None:
    stack = moving["ingestion-a" if role.endswith("-a") else "ingestion"]
    documents = policies_of(stack, f"frazil-dev-{role}", KNOWN)
    assert documents
    for application in (OLD, NEW, "00f1other"):
        arn = f"arn:aws:emr-serverless:eu-central-1:111111111111:/applications/{application}"
        actions = {"StartJobRun": arn}
        if role != "scheduler":
            actions |= {"ListJobRuns": arn, "GetJobRun": f"{arn}/jobruns/1", "CancelJobRun": f"{arn}/jobruns/1"}
        for action, resource in actions.items():
            asked = Request(action=f"emr-serverless:{action}", resource=resource)
            assert evaluate(asked, documents).is_allowed is (application != "00f1other"), (action, application)


def test_the_command_learns_the_ids_of_former_applications_from_an_output(moving: dict[str, dict[str, Any]]) -> None:
    [value] = [each["value"] for name, each in moving["ingestion"]["output"].items() if name == "former_applications"]
    assert [worked_out(each, moving["ingestion"], KNOWN) for each in value] == [OLD]
    assert "former_applications" not in stacks_of("dev")["ingestion"]["output"]
    assert described(MOVING, "none")["former_applications"] == ["frazil-dev-emr-spark-8-1-0-arm64"]


def test_the_end_of_a_move_changes_no_desired_state(moving: dict[str, dict[str, Any]]) -> None:
    """Otherwise each run would be replaced once more."""
    ended = synthesised(AFTER, (replace(EXAMPLE[0], engine=Spark(group="a")), EXAMPLE[1]))
    for what in ("ingestion", "ingestion-a"):
        before, after = (resources(each[what], "aws_s3_object") for each in (moving, ended))
        assert before == after


def test_no_rule_has_anything_against_two_applications_or_a_former_one_that_is_too_small(
    moving: dict[str, dict[str, Any]],
) -> None:
    reviewed = together([read(stack) for stack in moving.values()])
    assert findings(reviewed, Facts(reviewed, TODAY)) == []


def test_an_application_can_move_to_another_network_label_and_processor() -> None:
    moving = named(
        dev,
        emr=Emr(
            application="b",
            architecture=Architecture.X86_64,
            former=(Application(capacity=dev.runs.capacity, network=dev.network),),
        ),
        network=NetworkPlan(name="b", cidr="10.30.0.0/20"),
    )
    was, now = (each["foundation"] for each in (stacks_of("dev"), synthesised(moving)))
    for kind, each in was["resource"].items():
        for address, values in each.items():
            assert resources(now, kind)[address] == values, "of the first network and application, nothing changes"
    assert {each["cidr_block"] for each in resources(now, "aws_vpc").values()} == {"10.20.0.0/20", "10.30.0.0/20"}
    by_name = {each["name"].removeprefix("frazil-dev-emr-spark-8-1-0-"): each for each in applications(now).values()}
    first, second = by_name["arm64"], by_name["x86-64-b"]
    assert first["network_configuration"] != second["network_configuration"]
    assert second["architecture"] == "X86_64"


@pytest.mark.parametrize(
    ("emr", "place"),
    [
        (Emr(former=(FORMER,)), "deployment.emr.former[0].name"),
        (Emr(application="b", former=(FORMER, FORMER)), "deployment.emr.former[1].name"),
        (
            Emr(application="b", former=(replace(FORMER, network=NetworkPlan(cidr="10.30.0.0/20")),)),
            "deployment.emr.former[0].network.name",
        ),
    ],
)
def test_two_applications_and_two_networks_have_different_names(emr: Emr, place: str) -> None:
    with pytest.raises(InvalidDeclaration) as refused:
        named(dev, emr=emr)
    assert place in str(refused.value)
