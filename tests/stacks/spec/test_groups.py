"""Groups: each has its own jobs, roles, documents, schedules and state, and pipelines without one keep what they have."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from frazil.declaration import InvalidDeclaration, Pipeline, Spark, Table, Topic, parse
from frazil.rollout.desired import Mode, parse_desired
from frazil.rollout.function_settings import Settings
from infra.capacity import Capacity
from stacks.spec.deployments import DEPLOYMENTS, Access, AlarmsOf, Jobs, Monitoring
from tests.stacks.stacks.test_ingestion import KNOWN as ADDRESSES
from tests.stacks.synthesised import EXAMPLE, EXAMPLE_TOPICS, named, resources, synthesised
from tests.stacks.terraform_text import policies_of, worked_out
from tests.support.iam_evaluation import Request, evaluate

KNOWN = {
    **ADDRESSES,
    "kms_keykey_F64E54E4arn": "arn:aws:kms:eu-central-1:111111111111:key/1",
    "reader-keys_secret_A917B469arn": "arn:aws:secretsmanager:eu-central-1:111111111111:secret:frazil/dev/r",
}
DEV = DEPLOYMENTS["dev"]
ROOM = Capacity(cores=64, memory_gb=256, disk_gb=4000)
WIDE = named(
    DEV, runs=replace(DEV.runs, capacity=ROOM), access=Access(reconcilers=("arn:aws:iam::111111111111:role/o",))
)
QUICK = Jobs(
    ingest=DEV.runs.ingest, maintain=DEV.runs.maintain, ingest_minutes=5, maintain_hours=24, freshness_minutes=30
)


def of(group: str | None, name: str, table: str = "") -> Pipeline:
    return Pipeline(topic=Topic(name, value="avro"), table=Table(table or f"pay.{name}"), engine=Spark(group=group))


PAYMENTS = (of("payments", "invoices"), of("payments", "refunds"))


@pytest.fixture(scope="module")
def grouped() -> dict[str, dict[str, Any]]:
    return synthesised(
        named(WIDE, runs=replace(WIDE.runs, groups={"payments": QUICK})), (*EXAMPLE, *PAYMENTS), EXAMPLE_TOPICS
    )


def written(stack: dict[str, Any], name: str) -> bytes:
    [item] = [each for address, each in resources(stack, "aws_s3_object").items() if address.startswith(name)]
    return worked_out(item["content"], stack, KNOWN).encode()


def test_a_group_has_a_stack_with_its_own_state(grouped: dict[str, dict[str, Any]]) -> None:
    backend = grouped["ingestion-payments"]["terraform"]["backend"]["s3"]
    assert backend["key"] == "dev/ingestion-payments.tfstate"
    roles = {each["name"] for each in resources(grouped["ingestion-payments"], "aws_iam_role").values()}
    jobs = ("ingest-payments", "maintain-payments", "reconcile-ingest-payments")
    assert roles == {f"frazil-dev-{job}" for job in jobs}
    logs = {each["name"] for each in resources(grouped["ingestion-payments"], "aws_cloudwatch_log_group").values()}
    assert logs == {f"/frazil/dev/{job}" for job in jobs}


def test_the_proofs_of_each_group_expire(grouped: dict[str, dict[str, Any]]) -> None:
    """A lifecycle rule has a prefix without a wildcard, and the state of a rollout is beside the proofs."""
    buckets = resources(grouped["foundation"], "aws_s3_bucket_lifecycle_configuration")
    [rules] = [each["rule"] for name, each in buckets.items() if name.startswith("artifacts")]
    expiring = {rule["filter"][0]["prefix"] for rule in rules if "days" in rule.get("expiration", [{}])[0]}
    assert expiring == {"reconcile/ingest/proof/", "reconcile/ingest-payments/proof/"}


def test_a_group_has_its_own_desired_state_document_and_schedules(grouped: dict[str, dict[str, Any]]) -> None:
    stack = grouped["ingestion-payments"]
    assert parse(written(stack, "pipelines_object")) == PAYMENTS
    desired = parse_desired(written(stack, "desired"))
    assert (desired.job, desired.mode, desired.timeout_minutes) == ("ingest-payments", Mode.DRAIN, 5)
    assert desired.execution_role.endswith("role/frazil-dev-ingest-payments")
    assert desired.log_group == "/frazil/dev/ingest-payments"
    assert resources(stack, "aws_s3_object")["desired"]["key"] == "desired/ingest-payments.json"
    rates = {each["name"]: each["schedule_expression"] for each in resources(stack, "aws_scheduler_schedule").values()}
    assert rates == {
        "frazil-dev-ingest-payments": "rate(5 minutes)",
        "frazil-dev-reconcile-ingest-payments": "rate(5 minutes)",
        "frazil-dev-maintain-payments": "rate(24 hours)",
    }
    for each in resources(stack, "aws_scheduler_schedule").values():
        request = json.loads(worked_out(each["target"]["input"], stack, KNOWN))
        if "maintain" in each["name"]:
            assert request["Tags"]["frazil:job"] == "maintain-payments"
            assert request["ExecutionRoleArn"].endswith("maintain-payments")
        else:
            assert request["job"] == "ingest-payments", "the reconciler starts its runs"


def test_the_desired_state_of_a_group_names_the_environments_document(grouped: dict[str, dict[str, Any]]) -> None:
    own, shared = (grouped[what] for what in ("ingestion-payments", "ingestion"))
    assert parse_desired(written(own, "desired")).environment == parse_desired(written(shared, "desired")).environment
    assert not [at for at in resources(own, "aws_s3_object") if at.startswith("environment")], "one stack writes it"


def test_pipelines_without_a_group_do_not_notice_one(grouped: dict[str, dict[str, Any]]) -> None:
    before, after = synthesised(WIDE)["ingestion"], grouped["ingestion"]
    changed = {
        (kind, address)
        for kind in before["resource"].keys() | after["resource"].keys()
        for address in resources(before, kind).keys() | resources(after, kind).keys()
        if resources(before, kind).get(address) != resources(after, kind).get(address)
    }
    operators = {pair for pair in changed if pair[1].startswith(("operators_", "scheduler-role_"))}
    assert changed == operators, "who may start and watch the runs of all groups"
    assert operators


def test_one_groups_jobs_touch_no_table_of_another(grouped: dict[str, dict[str, Any]]) -> None:
    bucket = f"arn:aws:s3:::{DEV.names.bucket('tables')}"
    for what, role, own, other in (
        ("ingestion-payments", "frazil-dev-ingest-payments", "pay.db/refunds", "nyc.db/flights"),
        ("ingestion", "frazil-dev-ingest", "nyc.db/flights", "pay.db/refunds"),
    ):
        documents = policies_of(grouped[what], role, KNOWN)
        for place, expected in ((own, True), (other, False)):
            request = Request(action="s3:PutObject", resource=f"{bucket}/lake/{place}/data/1.parquet")
            assert evaluate(request, documents).is_allowed is expected


def _of_pipelines(stack: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the alarms of a stack but for those of the reconciler."""
    alarms = resources(stack, "aws_cloudwatch_metric_alarm").values()
    of_reconciler = ("reconcile", "rolled-back", "silent-pipelines")
    return [each for each in alarms if not any(name in each["alarm_name"] for name in of_reconciler)]


def test_alarms_of_a_group_are_on_its_own_metrics(grouped: dict[str, dict[str, Any]]) -> None:
    alarms = _of_pipelines(grouped["ingestion-payments"])
    assert {alarm["alarm_name"].removeprefix("frazil-dev-payments-") for alarm in alarms} >= {"late", "silent"}
    source = """SCHEMA("Frazil/dev", "group", pipeline) WHERE "group" = 'payments'"""
    assert all(source in alarm["metric_query"][0]["expression"] for alarm in alarms)
    [late] = [alarm for alarm in alarms if alarm["alarm_name"].endswith("-late")]
    assert (late["threshold"], late["metric_query"][0]["period"]) == (30 * 60, 300)
    each = synthesised(
        named(WIDE, monitoring=Monitoring(alarms=AlarmsOf.PIPELINE)), (*EXAMPLE, *PAYMENTS), EXAMPLE_TOPICS
    )
    own = _of_pipelines(each["ingestion-payments"])
    assert {json.dumps(alarm["dimensions"]) for alarm in own} == {
        json.dumps({"group": "payments", "pipeline": name}) for name in ("invoices", "refunds")
    }


def test_a_cadence_that_alarms_of_groups_cannot_see_is_refused() -> None:
    slow = replace(DEV.runs, ingest_minutes=61, freshness_minutes=180)
    with pytest.raises(InvalidDeclaration, match="see the latest three hours"):
        synthesised(named(DEV, runs=slow))
    assert synthesised(named(DEV, runs=slow, monitoring=Monitoring(alarms=AlarmsOf.PIPELINE)))


def test_in_a_namespace_of_two_groups_each_role_names_its_tables() -> None:
    pipelines = (of(None, "a"), of("payments", "b"))
    stacks = synthesised(WIDE, pipelines, ())
    bucket = f"arn:aws:s3:::{DEV.names.bucket('tables')}"
    for what, role, own in (
        ("ingestion", "frazil-dev-ingest", "a"),
        ("ingestion-payments", "frazil-dev-ingest-payments", "b"),
    ):
        allowed = {
            name
            for name in ("a", "b", "c")
            for request in [Request(action="s3:PutObject", resource=f"{bucket}/lake/pay.db/{name}/data/1")]
            if evaluate(request, policies_of(stacks[what], role, KNOWN)).is_allowed
        }
        assert allowed == {own}


def test_operators_and_scheduler_may_start_the_runs_of_all_groups(grouped: dict[str, dict[str, Any]]) -> None:
    stack = grouped["ingestion"]
    for role, kind in (("reconciler", "ingest"), ("scheduler", "maintain")):
        for group in ("", "-payments"):
            asked = Request(
                action="iam:PassRole",
                resource=DEV.names.role_arn(f"{kind}{group}"),
                context={"iam:PassedToService": "emr-serverless.amazonaws.com"},
            )
            assert evaluate(asked, policies_of(stack, f"frazil-dev-{role}", KNOWN)).is_allowed, (role, group)
            function = f"arn:aws:lambda:{DEV.region}:{DEV.account}:function:frazil-dev-reconcile-ingest{group}"
            call = Request(action="lambda:InvokeFunction", resource=function)
            assert evaluate(call, policies_of(stack, "frazil-dev-scheduler", KNOWN)).is_allowed, group


def test_without_a_pipeline_outside_of_groups_the_shared_parts_remain() -> None:
    stacks = synthesised(WIDE, PAYMENTS, ())
    assert [at for at in resources(stacks["ingestion"], "aws_s3_object") if at.startswith("environment-")]
    roles = {each["name"] for each in resources(stacks["ingestion"], "aws_iam_role").values()}
    assert roles == {"frazil-dev-scheduler", "frazil-dev-reconciler"}
    assert resources(stacks["ingestion"], "aws_scheduler_schedule_group")


def test_a_group_whose_last_pipeline_left_has_an_empty_stack() -> None:
    """So that the next apply removes its schedules: the stack of a group that is gone would never be applied."""
    stacks = synthesised(WIDE, former_groups=["payments"])
    assert "resource" not in stacks["ingestion-payments"]
    assert stacks["ingestion-payments"]["terraform"]["backend"]["s3"]["key"] == "dev/ingestion-payments.tfstate"


def test_groups_that_do_not_fit_the_application_at_once_are_refused() -> None:
    with pytest.raises(InvalidDeclaration) as refused:
        synthesised(DEV, (*EXAMPLE, *PAYMENTS), ())
    [problem] = refused.value.problems
    assert problem.path == "deployment.runs.capacity"
    assert "the jobs of 2 groups do not fit at once: 12 vCPU needed, 8 available" in problem.what


def test_settings_of_a_group_without_pipelines_are_refused() -> None:
    with pytest.raises(InvalidDeclaration, match=r"deployment\.runs\.groups\.payments: no pipeline is in this group"):
        synthesised(named(WIDE, runs=replace(WIDE.runs, groups={"payments": QUICK})))


@pytest.mark.parametrize("name", ["", "Payments", "payments-", "1", "a" * 21, "a b"])
def test_a_group_has_a_name_that_fits_into_names_of_roles(name: str) -> None:
    with pytest.raises(InvalidDeclaration, match="group"):
        of(name, "x")


def test_a_group_may_be_called_like_a_schedule_of_another() -> None:
    groups = {"reconcile": QUICK, "payments": QUICK, "payments-reconcile": QUICK}
    deployment = named(WIDE, runs=replace(WIDE.runs, groups=groups))
    others = [of(group, f"of_{number}") for number, group in enumerate(deployment.runs.groups)]
    stacks = synthesised(deployment, (*EXAMPLE, *others), EXAMPLE_TOPICS)
    names = [each["name"] for stack in stacks.values() for each in resources(stack, "aws_scheduler_schedule").values()]
    assert len(names) == 12
    assert len(set(names)) == len(names)


def test_the_deployed_reconciler_trusts_the_keys_of_the_deployment() -> None:
    signed = synthesised(replace(DEV, access=Access(trusted_keys=("ab" * 32, "cd" * 32))), EXAMPLE, EXAMPLE_TOPICS)
    [function] = resources(signed["ingestion"], "aws_lambda_function").values()
    variables = {
        key: worked_out(text, signed["ingestion"], KNOWN) for key, text in function["environment"]["variables"].items()
    }
    assert Settings.of(variables).trusted_keys == ("ab" * 32, "cd" * 32)
