"""What ingestion writes for jobs and reconciler is theirs to read, once Terraform has filled it in."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest

from frazil.declaration import Environment, Security, parse, parse_environment
from frazil.metrics.emf import UNITS
from frazil.metrics.metric_registry import COUNTED
from frazil.release.manifest import Role
from frazil.rollout.desired import Mode, parse_desired
from frazil.rollout.function_settings import EXECUTION, Settings
from infra.alarms import GROUP_ALARMS, PIPELINE_ALARMS
from stacks.spec.deployments import DEPLOYMENTS, AlarmsOf, Monitoring
from tests.stacks.depending import closures
from tests.stacks.synthesised import (
    EXAMPLE,
    EXAMPLE_TOPICS,
    FLOWING,
    FLOWING_PIPELINES,
    named,
    release,
    resources,
    stacks_of,
    synthesised,
)
from tests.stacks.terraform_text import worked_out

KNOWN = {
    "spark_application_7070AC67id": "00f1abc2def3gh45",
    "bootstrap_endpoint": "SASL_SSL://pkc-1.eu-central-1.aws.confluent.cloud:9092",
    "registryrest_endpoint": "https://psrc-1.eu-central-1.aws.confluent.cloud",
    "topicalarms_topic_CB6504A9arn": "arn:aws:sns:::alarms",
}
NAMES = sorted(DEPLOYMENTS)


def ingestion(environment: str) -> dict[str, Any]:
    return stacks_of(environment)["ingestion"]


def written(environment: str, name: str) -> tuple[str, str]:
    """Key and bytes of an object in the artifact bucket, when Terraform has run."""
    stack = ingestion(environment)
    [item] = [each for address, each in resources(stack, "aws_s3_object").items() if address.startswith(name)]
    return worked_out(item["key"], stack, KNOWN), worked_out(item["content"], stack, KNOWN)


def environment_of(environment: str) -> Environment:
    return parse_environment(written(environment, "environment")[1].encode())


def schedules(environment: str) -> dict[str, dict[str, Any]]:
    """The requests of schedules by their names, when Terraform has run."""
    stack = ingestion(environment)
    return {
        each["name"]: json.loads(worked_out(each["target"]["input"], stack, KNOWN))
        for each in resources(stack, "aws_scheduler_schedule").values()
    }


@pytest.mark.parametrize("environment", NAMES)
def test_the_environment_document_says_where_things_are(environment: str) -> None:
    told = environment_of(environment)
    assert told.name == environment
    assert told.kafka.bootstrap == "pkc-1.eu-central-1.aws.confluent.cloud:9092"
    assert told.registry is not None
    assert told.registry.url == KNOWN["registryrest_endpoint"]
    assert told.emr_application == KNOWN["spark_application_7070AC67id"]
    assert told.metrics_namespace == f"Frazil/{environment}"


def test_secrets_are_names_in_the_environment_document() -> None:
    told = environment_of("prod")
    assert told.kafka.security is Security.SASL_SSL
    assert told.kafka.password is not None
    assert (told.kafka.password.secretsmanager, told.kafka.password.field) == (
        "frazil/prod/confluent-reader",
        "kafka_secret",
    )
    stack = stacks_of("prod")["confluent"]
    [version] = resources(stack, "aws_secretsmanager_secret_version").values()
    assert set(json.loads(version["secret_string"])) == {"kafka_key", "kafka_secret", "registry_key", "registry_secret"}


@pytest.mark.parametrize("environment", NAMES)
def test_documents_are_named_by_the_hash_of_their_bytes(environment: str) -> None:
    for name in ("environment", "pipelines"):
        key, content = written(environment, name)
        assert key == f"documents/{hashlib.sha256(content.encode()).hexdigest()}.json"
    assert parse(content.encode()) == EXAMPLE


def test_what_tableflow_lands_is_in_no_document_role_or_alarm() -> None:
    told = json.dumps(ingestion(FLOWING))
    assert not [pipeline.name for pipeline in FLOWING_PIPELINES if pipeline.table.identifier in told]
    assert "flow.db" not in told


@pytest.mark.parametrize("environment", NAMES)
def test_desired_state_names_what_was_written(environment: str) -> None:
    desired = parse_desired(written(environment, "desired")[1].encode())
    deployment = DEPLOYMENTS[environment]
    assert written(environment, "desired")[0] == "desired/ingest.json"
    assert desired.environment == written(environment, "environment")[0]
    assert desired.application == KNOWN["spark_application_7070AC67id"]
    assert desired.release == release(deployment.emr.architecture).key
    assert (desired.mode, desired.workers) == (deployment.runs.mode, deployment.runs.ingest)


@pytest.mark.parametrize("environment", NAMES)
def test_no_schedule_names_a_release_of_the_ingest_job(environment: str) -> None:
    """After a rollback, it would start the rejected one again."""
    calls = {name: event for name, event in schedules(environment).items() if not name.endswith("-maintain")}
    prefix = DEPLOYMENTS[environment].names.prefix
    tick = {f"{prefix}-reconcile-ingest": {"job": "ingest"}}
    drain = {f"{prefix}-ingest": {"job": "ingest", EXECUTION: "<aws.scheduler.execution-id>"}}
    is_drain = DEPLOYMENTS[environment].runs.mode is Mode.DRAIN
    assert calls == (tick | drain if is_drain else tick)
    for each in resources(ingestion(environment), "aws_scheduler_schedule").values():
        if not each["name"].endswith("-maintain"):
            assert "aws_lambda_function.ingest-reconciler" in each["target"]["arn"]


@pytest.mark.parametrize("environment", NAMES)
def test_the_reconciler_is_the_releases_own_and_called_when_a_run_changes_its_state(environment: str) -> None:
    stack, deployment = ingestion(environment), DEPLOYMENTS[environment]
    [function] = resources(stack, "aws_lambda_function").values()
    program = release(deployment.emr.architecture).the(Role.RECONCILER)
    assert (function["s3_bucket"], function["s3_key"]) == (deployment.names.bucket("artifacts"), program.key)
    assert function["architectures"] == [str(deployment.emr.architecture).lower()]
    settings = Settings.of(function["environment"]["variables"])
    assert (settings.job, settings.metrics_namespace) == ("ingest", f"Frazil/{environment}")
    [rule] = resources(stack, "aws_cloudwatch_event_rule").values()
    pattern = json.loads(worked_out(rule["event_pattern"], stack, KNOWN))
    assert pattern["detail"]["applicationId"] == [KNOWN["spark_application_7070AC67id"]]
    assert pattern["detail-type"] == ["EMR Serverless Job Run State Change"]
    [permission] = resources(stack, "aws_lambda_permission").values()
    assert permission["principal"] == "events.amazonaws.com"
    assert "aws_cloudwatch_event_rule" in permission["source_arn"]


@pytest.mark.parametrize("environment", NAMES)
def test_a_scheduled_run_is_started_once_an_execution_and_ends_within_its_interval(environment: str) -> None:
    runs = DEPLOYMENTS[environment].runs
    request = schedules(environment)[f"frazil-{environment}-maintain"]
    assert request["ClientToken"] == "<aws.scheduler.execution-id>"
    assert request["ExecutionTimeoutMinutes"] == runs.maintain_hours * 60
    assert request["Mode"] == "BATCH"


@pytest.mark.parametrize("environment", NAMES)
def test_nobody_is_told_of_a_run_before_its_documents_and_roles_are_there(environment: str) -> None:
    """Neither desired state nor a schedule refers to them: it only holds their names."""
    stack = ingestion(environment)
    documents = {f"aws_s3_object.{name}" for name in resources(stack, "aws_s3_object")} - {"aws_s3_object.desired"}
    attached = {
        f"aws_iam_role_policy_attachment.{name}"
        for name in resources(stack, "aws_iam_role_policy_attachment")
        if not name.startswith(("scheduler", "operators", "ingest-reconciler"))
    }
    assert len(documents) == 2
    assert len(attached) >= 2
    needed = closures(stack)
    starting = [each for each in needed if each.startswith("aws_scheduler_schedule.")]
    assert starting
    for each in ("aws_s3_object.desired", *starting):
        assert needed[each] >= documents | attached, each
    for each in starting:
        assert any(one.startswith("aws_iam_role_policy_attachment.scheduler") for one in needed[each])


@pytest.mark.parametrize("environment", NAMES)
def test_a_document_is_there_until_the_one_that_follows_it_is(environment: str) -> None:
    for name, item in resources(ingestion(environment), "aws_s3_object").items():
        assert (item.get("lifecycle") == {"create_before_destroy": True}) == (name != "desired")


def test_without_a_release_nothing_is_scheduled_and_all_else_is_made() -> None:
    stack = synthesised(DEPLOYMENTS["dev"], release=None)["ingestion"]
    assert not resources(stack, "aws_scheduler_schedule")
    assert "desired" not in resources(stack, "aws_s3_object")
    assert len(resources(stack, "aws_iam_role")) == 2
    assert not resources(stack, "aws_cloudwatch_metric_alarm"), "silence would raise alarms before anything can run"


_QUERY = re.compile(
    r"""SELECT (?P<function>MAX|SUM|COUNT)\((?P<metric>\w+)\) FROM SCHEMA\("(?P<namespace>[\w/]+)"(?P<group>, "group")?, pipeline\)"""
    r"""(?P<where> WHERE "group" = '[a-z0-9-]+')?(?P<by> GROUP BY pipeline ORDER BY (MAX|SUM)\(\) DESC)?"""
)


@pytest.mark.parametrize("environment", NAMES)
def test_a_group_has_nine_alarms_on_metrics_that_jobs_write(environment: str) -> None:
    alarms = [
        a for a in resources(ingestion(environment), "aws_cloudwatch_metric_alarm").values() if "metric_query" in a
    ]
    assert len(alarms) == GROUP_ALARMS == 9
    for alarm in alarms:
        [query] = alarm["metric_query"]
        found = _QUERY.fullmatch(query["expression"])
        assert found, query["expression"]
        assert found["namespace"] == environment_of(environment).metrics_namespace
        assert found["metric"] in {*UNITS, *COUNTED, "rejected"}
        assert (found["by"] is None) == alarm["alarm_name"].endswith("-silent")
        assert query["period"] * alarm["evaluation_periods"] <= 3 * 3600, "CloudWatch sees the latest three hours"


def test_only_silence_of_all_pipelines_raises_an_alarm_of_a_group() -> None:
    alarms = resources(ingestion("dev"), "aws_cloudwatch_metric_alarm").values()
    missing = {alarm["alarm_name"]: alarm["treat_missing_data"] for alarm in alarms}
    assert [name for name, what in missing.items() if what == "breaching"] == ["frazil-dev-silent"]


@pytest.mark.parametrize(("alarms", "seconds"), [(AlarmsOf.GROUP, "5400"), (AlarmsOf.PIPELINE, None)])
def test_silence_of_one_pipeline_of_a_group_raises_an_alarm(alarms: AlarmsOf, seconds: str | None) -> None:
    """The function counts silent pipelines; where each pipeline has alarms, its own are raised by silence."""
    deployment = named(DEPLOYMENTS["dev"], monitoring=Monitoring(alarms=alarms))
    stack = synthesised(deployment)["ingestion"]
    [function] = resources(stack, "aws_lambda_function").values()
    assert function["environment"]["variables"].get("FRAZIL_SILENT_SECONDS") == seconds
    assert deployment.runs.freshness_minutes + 2 * deployment.runs.ingest_minutes == 90
    found = [
        (each["dimensions"], each["threshold"], each["treat_missing_data"])
        for each in resources(stack, "aws_cloudwatch_metric_alarm").values()
        if each.get("metric_name") == "silent_pipelines"
    ]
    assert found == ([({"job": "ingest"}, 0, "notBreaching")] if seconds else [])


def _is_of_a_pipeline(alarm: dict[str, Any]) -> bool:
    """Return whether it is no alarm of the scheduler or the reconciler."""
    of_reconciler = ("rolled_back", "silent_pipelines")
    return alarm["namespace"] not in ("AWS/Scheduler", "AWS/Lambda") and alarm["metric_name"] not in of_reconciler


def test_alarms_of_each_pipeline_are_on_metrics_that_jobs_write() -> None:
    stack = synthesised(named(DEPLOYMENTS["dev"], monitoring=Monitoring(alarms=AlarmsOf.PIPELINE)))["ingestion"]
    alarms = [a for a in resources(stack, "aws_cloudwatch_metric_alarm").values() if _is_of_a_pipeline(a)]
    assert len(alarms) == PIPELINE_ALARMS * len(EXAMPLE)
    for alarm in alarms:
        assert alarm["namespace"] == environment_of("dev").metrics_namespace
        assert alarm["metric_name"] in {*UNITS, *COUNTED, "rejected"}
        assert set(alarm["dimensions"]) == {"pipeline"}
    late = [a["treat_missing_data"] for a in alarms if a["metric_name"] == "freshness_seconds"]
    assert late == ["breaching"] * len(EXAMPLE)


RUNBOOKS = {
    "late": "frazilfreshness",
    "silent": "frazilnodriver",
    "decision-required": "frazilsuspended",
    "pipeline-failed": "frazilfailed",
    "rejected": "frazildeadletters",
    "service-unavailable": "frazilserviceunavailable",
    "schema-incompatible": "frazilschemaincompatible",
    "retention": "frazilretention",
    "many-files": "frazilsmallfiles",
}


@pytest.mark.parametrize("alarms", list(AlarmsOf))
def test_each_alarm_of_pipelines_ends_with_its_runbook(alarms: AlarmsOf) -> None:
    stack = synthesised(named(DEPLOYMENTS["dev"], monitoring=Monitoring(alarms=alarms)))["ingestion"]
    prefixes = ["frazil-dev"] if alarms is AlarmsOf.GROUP else [f"frazil-dev-{each.name}" for each in EXAMPLE]
    wanted = {f"{prefix}-{what}": anchor for prefix in prefixes for what, anchor in RUNBOOKS.items()}
    found = {
        each["alarm_name"]: each["alarm_description"].rpartition(". docs/guides/alarms.md#")[2]
        for each in resources(stack, "aws_cloudwatch_metric_alarm").values()
        if each["alarm_name"] in wanted
    }
    missing = {name for name in wanted if name.endswith("-silent")} if alarms is AlarmsOf.PIPELINE else set()
    assert found == {name: anchor for name, anchor in wanted.items() if name not in missing}


@pytest.mark.parametrize("environment", NAMES)
def test_unread_records_raise_an_alarm_before_kafka_deletes_them(environment: str) -> None:
    alarms = resources(ingestion(environment), "aws_cloudwatch_metric_alarm").values()
    [retention] = [alarm for alarm in alarms if alarm["alarm_name"].endswith("-retention")]
    [query] = retention["metric_query"]
    assert query["expression"].startswith("SELECT MAX(retention_used)")
    assert (retention["threshold"], retention["evaluation_periods"]) == (0.5, 3)
    assert query["period"] >= 300


@pytest.mark.parametrize("environment", NAMES)
def test_an_environment_has_one_dashboard_of_its_own_metrics(environment: str) -> None:
    stack = ingestion(environment)
    [dashboard] = resources(stack, "aws_cloudwatch_dashboard").values()
    assert dashboard["dashboard_name"] == DEPLOYMENTS[environment].names.prefix
    for widget in json.loads(worked_out(dashboard["dashboard_body"], stack, KNOWN))["widgets"]:
        assert widget["properties"]["region"] == DEPLOYMENTS[environment].region
        for [search] in widget["properties"]["metrics"]:
            assert search["expression"].startswith(f"""SEARCH('{{"Frazil/{environment}",""")
            assert search["label"].startswith("${PROP('Dim."), "Terraform leaves labels as they are"


def test_a_dashboard_does_not_change_with_pipelines() -> None:
    fewer = synthesised(DEPLOYMENTS["dev"], EXAMPLE[:1], EXAMPLE_TOPICS)["ingestion"]
    assert resources(fewer, "aws_cloudwatch_dashboard") == resources(ingestion("dev"), "aws_cloudwatch_dashboard")
