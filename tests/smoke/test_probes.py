"""The probes of a deployed environment, on moto: a healthy one is shown, and each fault is named with its remedy."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws
from moto.cloudwatch.models import cloudwatch_backends

from frazil.clients.aws_account import account_clients
from frazil.clients.deployed_resources import Action, DeployedResources, Function
from frazil.clients.emr import Run, RunState
from frazil.declaration import (
    Environment,
    GlueCatalog,
    Kafka,
    Pipeline,
    Table,
    Topic,
    canonical,
    each_topic,
    environment_document,
)
from frazil.declaration.documents.document import document
from frazil.declaration.environment import Mechanism, Security
from frazil.declaration.secret import Secret
from frazil.exit_codes import Exit, worst
from frazil.release.manifest import manifest
from frazil.release.upload import document_key
from frazil.rollout.desired import Desired, Mode, desired_document, desired_key
from frazil.rollout.job_run_request import TAG_DESIRED, TAG_JOB, TAG_RELEASE
from frazil.rollout.run_proof import Driver, Reached, RunName
from frazil.rollout.state import RolloutState, state_key
from frazil.smoke.deployed_job import Names, Services
from frazil.smoke.probe import Answer, Outcome, answers
from frazil.smoke.probes import probes
from policies.documents import placeholders
from tests.policies.example import policy
from tests.support.fake_store import FakeStore
from tests.support.rollout_world import release

REGION, ACCOUNT = "eu-central-1", "123456789012"
NAMES = Names(
    prefix="frazil-dev",
    schedule_group="frazil-dev",
    log_groups="/frazil/dev/",
    alarm_topic=f"arn:aws:sns:{REGION}:{ACCOUNT}:frazil-dev",
    alarm_addresses=1,
    reader_role=f"arn:aws:iam::{ACCOUNT}:role/frazil-dev-reader",
    is_local=False,
)
FUNCTION = "frazil-dev-reconcile-ingest"
SECRET = Secret(secretsmanager="frazil/dev/kafka", field="kafka_secret")
PLACE = Environment(
    name="dev",
    kafka=Kafka(
        bootstrap="k:9092",
        security=Security.SASL_SSL,
        mechanism=Mechanism.PLAIN,
        username=replace(SECRET, field="kafka_key"),
        password=SECRET,
    ),
    catalog=GlueCatalog(region=REGION, warehouse="s3://frazil-dev-tables/lake"),
    artifact_bucket="artifacts",
    emr_application="app1",
    metrics_namespace="Frazil/dev",
)
PIPELINES = [Pipeline(topic=Topic(name, value="text"), table=Table(f"shop.{name}")) for name in ("orders", "users")]
WRITTEN, TOLD = canonical(document(PIPELINES)), canonical(environment_document(PLACE))
GOOD_DRIVER = Driver(
    runtime={"frazil": "1.0.0", "python": "3.11.9", "spark": "4.1.1-amzn-0", "iceberg": "1.11.0"},
    missing={"artifacts": "not found", "tables": "not found"},
)


@cache
def _client(service: str) -> Any:
    """To make a client takes longer than all its calls."""
    made = account_clients(REGION, keys=("testing", "testing"))(service)
    made.meta.events.register("before-call", _note)
    return made


ASKED: set[str] = set()
"""The actions that were asked for, by IAM's names."""


def _note(model: Any, **_: Any) -> None:
    service = model.service_model.endpoint_prefix
    ASKED.add(f"{'cloudwatch' if service == 'monitoring' else service}:{model.name}")


class Resources(DeployedResources):
    """moto has no history of alarms, makes each function now, and counts no subscriptions."""

    action: Action | None = None
    raised: tuple[str, ...] = ()
    changed_at: datetime | None = None
    confirmed = "1"

    def function(self, name: str) -> Function | None:
        found = super().function(name)
        return found if found is None or self.changed_at is None else replace(found, changed_at=self.changed_at)

    def topic(self, arn: str) -> Mapping[str, str] | None:
        found = super().topic(arn)
        return None if found is None else {**found, "SubscriptionsConfirmed": self.confirmed}

    def newest_action(self, alarm: str) -> Action | None:
        return self.action

    def raise_alarm(self, name: str, reason: str) -> None:
        super().raise_alarm(name, reason)
        self.raised += (name,)


@dataclass
class Account:
    """A deployed account of one job, whose newest runs are as they should be."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    names: Names = NAMES
    store: FakeStore = field(default_factory=FakeStore)
    logs: FakeStore = field(default_factory=FakeStore)
    found: list[Run] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.resources = Resources(_client, region=REGION)

    def runs(self, application: str, tags: Any, *, names: str, ended: int) -> list[Run]:
        current = {TAG_DESIRED: self.desired.digest, TAG_RELEASE: "1.0.0"}
        return [run for run in self.found if tags.items() <= {**current, **run.tags}.items()][-ended:]

    def put(self, job: str, state: RunState, *, minutes_ago: float = 30, details: str = "", **tags: str) -> Run:
        """Add a run of a job."""
        at = self.now - timedelta(minutes=minutes_ago)
        run = Run(
            id=f"00f{len(self.found)}",
            application="app1",
            name=f"frazil-{job}",
            state=state,
            details=details,
            created_at=at,
            updated_at=at + timedelta(minutes=2),
            tags={TAG_JOB: job, **{f"frazil:{name}": value for name, value in tags.items()}},
            log_uri=f"s3://logs/{job}/",
        )
        self.found.append(run)
        return run

    def want(self, mode: Mode = Mode.DRAIN) -> Desired:
        for key, data in (
            (document_key(WRITTEN), WRITTEN),
            (document_key(TOLD), TOLD),
            (release().key, manifest(release())),
        ):
            self.store.put(key, data)
        self.desired = Desired(
            job="ingest",
            generation=3,
            label="emr-spark-8.1.0",
            application="app1",
            release=release().key,
            document=document_key(WRITTEN),
            environment=document_key(TOLD),
            execution_role=f"arn:aws:iam::{ACCOUNT}:role/frazil-dev-ingest",
            log_uri="s3://logs/ingest/",
            log_group="/frazil/dev/ingest",
            mode=mode,
        )
        self.store.put(desired_key("ingest"), desired_document(self.desired))
        return self.desired

    def prove(self, *, driver: Driver | None = GOOD_DRIVER, at: datetime | None = None, **reached: Reached) -> None:
        name = RunName.of(f"{self.desired.run_prefix}0f")
        assert name is not None
        pipelines = {"orders": Reached.COMMITTED, "users": Reached.CAUGHT_UP, **reached}
        made = name.proof(pipelines, at_ms=round((at or self.now).timestamp() * 1000), driver=driver)
        self.store.put(name.proof_key, made.document())

    def client(self, service: str) -> Any:
        return _client(service)

    def metric(self, namespace: str, name: str, value: float, *, minutes_ago: float = 6, **dimensions: str) -> None:
        listed = [{"Name": key, "Value": held} for key, held in dimensions.items()]
        at = self.now - timedelta(minutes=minutes_ago)
        datum = {"MetricName": name, "Dimensions": listed, "Value": value, "Timestamp": at}
        self.client("cloudwatch").put_metric_data(Namespace=namespace, MetricData=[datum])

    def smoke(self, name: str = "", *, publish: bool = False) -> dict[str, Answer]:
        """Return the results by name; with a name, of this probe only."""
        services = Services(
            environment=PLACE,
            names=self.names,
            store=self.store,
            bucket=lambda name: self.logs,
            emr=self,
            resources=self.resources,
            now=self.now,
            wait=self.waited.append,
        )
        chosen = [each for each in probes(services, is_published=publish) if name in ("", each.name)]
        return {each.name: each for each in answers(chosen)}

    def outcome(self, name: str, **options: Any) -> tuple[Outcome, str]:
        answer = self.smoke(name, **options)[name]
        return answer.outcome, f"{answer.found}. {answer.remedy}"


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        made = Account()
        made.want()
        for job in ("ingest", "maintain"):
            run = made.put(job, RunState.SUCCESS)
            made.logs.put(f"{job}/applications/app1/jobs/{run.id}/SPARK_DRIVER/stdout.gz", b"")
            made.client("logs").create_log_group(logGroupName=f"/frazil/dev/{job}")
            made.client("logs").create_log_stream(
                logGroupName=f"/frazil/dev/{job}",
                logStreamName=f"{job}/applications/app1/jobs/{run.id}/SPARK_DRIVER/stdout",
            )
        made.prove()
        made.store.put(state_key("ingest"), RolloutState().with_proven(made.desired).document())
        _deploy(made)
        yield made


def _deploy(account: Account) -> None:
    """Make what the stacks make, as far as probes ask for it."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as program:
        program.writestr("f.py", "")
    role = account.client("iam").create_role(RoleName=FUNCTION, AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    function = account.client("lambda").create_function(
        FunctionName=FUNCTION, Role=role, Runtime="python3.11", Handler="f.h", Code={"ZipFile": made.getvalue()}
    )
    scheduler = account.client("scheduler")
    scheduler.create_schedule_group(Name="frazil-dev")
    for name in (FUNCTION, "frazil-dev-ingest", "frazil-dev-maintain"):
        scheduler.create_schedule(
            GroupName="frazil-dev",
            Name=name,
            ScheduleExpression="rate(5 minutes)",
            FlexibleTimeWindow={"Mode": "OFF"},
            Target={"Arn": function["FunctionArn"], "RoleArn": role},
        )
    account.client("events").put_rule(Name=FUNCTION, EventPattern=json.dumps({"source": ["aws.emr-serverless"]}))
    account.client("sns").create_topic(Name="frazil-dev", Attributes={"KmsMasterKeyId": "alias/frazil-dev"})
    _alarm(account, "frazil-dev-not-started", "OK")
    for pipeline in ("orders", "users"):
        account.metric("Frazil/dev", "freshness_seconds", 0, pipeline=pipeline)
    account.metric("Frazil/dev", "rolled_back", 0, job="ingest")
    account.metric("AWS/Lambda", "Invocations", 12, FunctionName=FUNCTION)
    account.metric("AWS/Lambda", "Errors", 0, FunctionName=FUNCTION)
    account.resources.action = Action(at=account.now, is_done=True, summary="Successfully executed action")
    account.resources.changed_at = account.now - timedelta(days=1)
    account.client("s3").create_bucket(Bucket="tables", CreateBucketConfiguration={"LocationConstraint": REGION})
    account.client("glue").create_database(DatabaseInput={"Name": "shop"})
    for table, packed in (("orders", bytes), ("users", gzip.compress)):
        key = f"lake/shop.db/{table}/metadata/1.metadata.json"
        content = packed(json.dumps({"table-uuid": table}).encode())
        account.client("s3").put_object(Bucket="tables", Key=key, Body=content)
        entry = {"Name": table, "Parameters": {"metadata_location": f"s3://tables/{key}"}}
        account.client("glue").create_table(DatabaseName="shop", TableInput=entry)


def _alarm(account: Account, name: str, state: str) -> None:
    cloudwatch = account.client("cloudwatch")
    cloudwatch.put_metric_alarm(
        AlarmName=name,
        MetricName="m",
        Namespace="n",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=0,
        ComparisonOperator="GreaterThanThreshold",
    )
    cloudwatch.set_alarm_state(AlarmName=name, StateValue=state, StateReason="r")


def subjects(names: Iterable[str]) -> set[str]:
    return {re.sub(" (ingest|maintain)$", "", name) for name in names}


def test_a_healthy_environment_is_shown_probe_by_probe(account: Account, root: Path) -> None:
    found = account.smoke()
    assert {name: each.found for name, each in found.items() if each.outcome is not Outcome.SHOWN} == {}
    table = (root / "docs" / "deploy.md").read_text().partition("| probe |")[2].partition("\n\n")[0]
    assert subjects(found) == set(re.findall(r"^\| ([a-z ]+) \|", table, re.MULTILINE))
    assert worst(each.exit for each in found.values()) is Exit.SUCCESS
    assert found["log group maintain"].found.startswith("/frazil/dev/maintain has ")
    shown = found["run ingest"].document()
    assert (shown["outcome"], shown["remedy"]) == ("shown", None)


def test_the_deployer_may_ask_all_of_it(account: Account) -> None:
    ASKED.clear()
    account.smoke(publish=True)
    granted = {
        action
        for each in policy("deployer")["Statement"]
        if each["Effect"] == "Allow"
        for action in ([each["Action"]] if isinstance(each["Action"], str) else each["Action"])
    }
    of_reader = {"glue:GetTable", "s3:GetObject"}  # the reader's own session
    assert len(ASKED) >= 9
    assert ASKED - of_reader - granted == {"sts:AssumeRole"}
    assert "cloudwatch:DescribeAlarmHistory" in granted
    assert placeholders("deployer")


def changed(account: Account, name: str, wanted: Outcome, *said: str, **options: Any) -> None:
    outcome, found = account.outcome(name, **options)
    assert (outcome, [each for each in said if each not in found]) == (wanted, []), found


def driver(**changed: Any) -> Driver:
    return replace(GOOD_DRIVER, **changed)


def of_another(part: str, version: str) -> Callable[[Account], None]:
    return lambda account: account.prove(driver=driver(runtime={**GOOD_DRIVER.runtime, part: version}))


LOG, FORBIDDEN = "frazil jobs logs dev 00f0", {"tables": "S3 refused (AccessDenied)", "artifacts": "not found"}


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("run ingest", lambda a: a.put("ingest", RunState.FAILED, minutes_ago=3, details="exit code 6"), ("exit code 6", "frazil jobs logs dev 00f2 --job ingest")),
        ("run ingest", lambda a: a.put("ingest", RunState.QUEUED, minutes_ago=16), ("QUEUED for 16 minutes",)),
        ("proof ingest", lambda a: a.store.objects.pop(next(k for k in a.store.objects if "/proof/" in k)), ("00f0 has written none", LOG)),
        ("proof ingest", lambda a: a.prove(at=a.now - timedelta(hours=1)), ("older than run 00f0", LOG)),
        ("proof ingest", lambda a: a.prove(users=Reached.UNAVAILABLE), ("a service is unavailable to users", LOG)),
        ("proof ingest", lambda a: a.prove(users=Reached.NOTHING), ("nothing landed by users", LOG)),
        *(("runtime ingest", of_another(part, version), (f"{part} {version}, not ",)) for part, version in
          (("python", "3.12.1"), ("spark", "3.5.1"), ("iceberg", "1.1.0"), ("frazil", "0.9"))),
        ("missing objects ingest", lambda a: a.prove(driver=driver(missing=FORBIDDEN)), ("tables: S3 refused (AccessDenied)", "s3:ListBucket")),
        ("documents ingest", lambda a: a.store.put(a.desired.document, WRITTEN + b" "), ("other content",)),
        ("reconciler ingest", lambda a: cloudwatch_backends[ACCOUNT][REGION].metric_data.clear(), ("no call in the last hour",)),
    ],
)  # fmt: skip
def test_a_fault_fails_its_probe_with_cause_and_remedy(
    account: Account, name: str, change: Callable[[Account], Any], said: tuple[str, ...]
) -> None:
    change(account)
    changed(account, name, Outcome.FAILED, *said)


def test_a_run_that_does_not_start_is_a_matter_of_capacity(account: Account) -> None:
    account.found = [run for run in account.found if run.tags[TAG_JOB] != "ingest"]
    account.put("ingest", RunState.SCHEDULED, minutes_ago=5)
    changed(account, "run ingest", Outcome.NOT_YET)
    account.found.pop()
    account.put("ingest", RunState.SCHEDULED, minutes_ago=16)
    changed(account, "run ingest", Outcome.FAILED, "16 minutes", "capacity")


def test_maintenance_that_never_ran_is_not_yet_and_fails_nothing(account: Account) -> None:
    account.found = [run for run in account.found if run.tags[TAG_JOB] != "maintain"]
    found = account.smoke()
    assert {found[f"{each} maintain"].outcome for each in ("run", "log group", "log files")} == {Outcome.NOT_YET}
    assert not any(each.is_awaited for each in found.values()), "it runs in some hours"
    assert worst(each.exit for each in found.values()) is Exit.SUCCESS


def test_a_log_agent_that_writes_nothing_fails_after_ten_minutes(account: Account) -> None:
    account.client("logs").delete_log_stream(
        logGroupName="/frazil/dev/ingest", logStreamName="ingest/applications/app1/jobs/00f0/SPARK_DRIVER/stdout"
    )
    changed(account, "log group ingest", Outcome.FAILED, "no stream of run 00f0", "frazil-dev-ingest")
    account.found[0] = replace(account.found[0], created_at=account.now - timedelta(minutes=5))
    changed(account, "log group ingest", Outcome.NOT_YET)
    account.client("logs").delete_log_group(logGroupName="/frazil/dev/ingest")
    changed(account, "log group ingest", Outcome.FAILED, "does not exist", "foundation")


def test_a_run_without_its_log_on_s3_fails_once_it_has_ended(account: Account) -> None:
    account.logs.objects.clear()
    changed(
        account, "log files ingest", Outcome.FAILED, "s3://logs/ingest/applications/app1/jobs/00f0/", "s3:PutObject"
    )
    account.found[0] = replace(account.found[0], state=RunState.RUNNING)
    changed(account, "log files ingest", Outcome.NOT_YET)


def test_a_run_that_lasts_has_the_time_of_a_proof_to_land(account: Account) -> None:
    account.found[0] = replace(account.found[0], state=RunState.RUNNING, created_at=account.now - timedelta(minutes=29))
    account.prove(users=Reached.NOTHING)
    changed(account, "proof ingest", Outcome.NOT_YET, "nothing landed by users")
    account.found[0] = replace(account.found[0], created_at=account.now - timedelta(minutes=31))
    changed(account, "proof ingest", Outcome.FAILED, "nothing landed by users")


def test_a_run_that_lasts_writes_its_proof_every_five_minutes(account: Account) -> None:
    account.found[0] = replace(account.found[0], state=RunState.RUNNING, created_at=account.now - timedelta(days=9))
    account.prove(at=account.now - timedelta(minutes=29))
    changed(account, "proof ingest", Outcome.SHOWN)
    account.prove(at=account.now - timedelta(minutes=31))
    changed(account, "proof ingest", Outcome.FAILED, "31 minutes old")


def test_an_older_releases_proof_has_no_versions(account: Account) -> None:
    account.prove(driver=None)
    changed(account, "runtime ingest", Outcome.NOT_YET, "the release writes no versions")
    changed(account, "missing objects ingest", Outcome.NOT_YET)


def test_a_secret_is_shown_by_a_pipeline_that_has_landed(account: Account) -> None:
    changed(account, "secret ingest", Outcome.SHOWN, "frazil/dev/kafka")
    account.prove(orders=Reached.UNAVAILABLE, users=Reached.UNAVAILABLE)
    changed(account, "secret ingest", Outcome.FAILED, "service_unavailable")
    account.prove(orders=Reached.NOTHING, users=Reached.NOTHING)
    changed(account, "secret ingest", Outcome.NOT_YET)


def test_a_log_that_becomes_no_metric_fails_after_twenty_minutes(account: Account) -> None:
    cloudwatch_backends[ACCOUNT][REGION].metric_data.clear()
    account.metric("Frazil/dev", "freshness_seconds", 0, pipeline="users")
    account.metric("AWS/Lambda", "Invocations", 12, FunctionName=FUNCTION)
    changed(account, "metrics ingest", Outcome.FAILED, "Frazil/dev has no freshness_seconds of orders. ", "_aws")
    account.found[0] = replace(account.found[0], created_at=account.now - timedelta(minutes=15))
    changed(account, "metrics ingest", Outcome.NOT_YET)
    changed(account, "reconciler ingest", Outcome.FAILED, "no metric of its log", "no data")
    account.resources.changed_at = account.now - timedelta(minutes=20)
    changed(account, "reconciler ingest", Outcome.NOT_YET, "no metric of its log")


def test_metrics_of_the_release_before_show_nothing(account: Account) -> None:
    cloudwatch_backends[ACCOUNT][REGION].metric_data.clear()
    for pipeline in ("orders", "users"):
        account.metric("Frazil/dev", "freshness_seconds", 0, minutes_ago=60, pipeline=pipeline)
    changed(account, "metrics ingest", Outcome.FAILED, "Frazil/dev has no freshness_seconds of orders, users")


def test_drains_that_follow_each_other_quickly_hide_no_missing_metric_and_no_missing_log(account: Account) -> None:
    cloudwatch_backends[ACCOUNT][REGION].metric_data.clear()
    account.logs.objects.clear()
    account.client("logs").delete_log_stream(
        logGroupName="/frazil/dev/ingest", logStreamName="ingest/applications/app1/jobs/00f0/SPARK_DRIVER/stdout"
    )
    for minutes in (25, 20, 15, 10, 5):
        account.put("ingest", RunState.SUCCESS, minutes_ago=minutes)
    changed(account, "metrics ingest", Outcome.FAILED, "_aws")
    changed(account, "log group ingest", Outcome.FAILED, "no stream of run 00f4")
    changed(account, "log files ingest", Outcome.FAILED, "s3:PutObject")


def test_calls_of_a_function_before_its_last_change_show_nothing(account: Account) -> None:
    account.metric("AWS/Lambda", "Errors", 2, FunctionName=FUNCTION)
    account.resources.changed_at = account.now - timedelta(minutes=4)
    changed(account, "reconciler ingest", Outcome.NOT_YET, "has just changed")
    account.resources.changed_at = account.now - timedelta(minutes=9)
    changed(account, "reconciler ingest", Outcome.NOT_YET, "no call since it changed")


def test_runs_of_an_earlier_deployment_show_nothing(account: Account) -> None:
    account.found.clear()
    account.put("ingest", RunState.SUCCESS, desired="0" * 64)
    account.put("maintain", RunState.SUCCESS, release="0.9.0")
    changed(account, "run ingest", Outcome.NOT_YET, "no run yet")
    changed(account, "run maintain", Outcome.NOT_YET, "no run yet")


def test_an_address_that_was_unsubscribed_fails(account: Account) -> None:
    account.resources.confirmed = "0"
    changed(account, "alarm topic", Outcome.FAILED, "0 of 1 addresses are subscribed")
    account.names = replace(NAMES, alarm_addresses=0)
    changed(account, "alarm topic", Outcome.NOT_HERE, "no address is declared")
    account.resources.action = Action(at=account.now, is_done=False, summary="KMS refused")
    changed(account, "alarm topic", Outcome.FAILED, "KMS refused", "key")


def test_a_topic_whose_action_nobody_saw_asks_for_a_message(account: Account) -> None:
    account.resources.action = None
    changed(account, "alarm topic", Outcome.NOT_YET, "--publish")
    assert account.resources.raised == ()


def test_a_function_that_fails_names_its_log(account: Account) -> None:
    account.metric("AWS/Lambda", "Errors", 2, FunctionName=FUNCTION)
    changed(account, "reconciler ingest", Outcome.FAILED, "2 of 12 calls failed", "/frazil/dev/reconcile-ingest")
    account.client("lambda").delete_function(FunctionName=FUNCTION)
    changed(account, "reconciler ingest", Outcome.FAILED, f"{FUNCTION} does not exist")


def test_a_disabled_schedule_and_a_missing_rule_are_named(account: Account) -> None:
    scheduler = account.client("scheduler")
    held = scheduler.get_schedule(GroupName="frazil-dev", Name="frazil-dev-maintain")
    wanted = {key: held[key] for key in ("GroupName", "Name", "ScheduleExpression", "FlexibleTimeWindow", "Target")}
    scheduler.update_schedule(**wanted, State="DISABLED")
    account.client("events").delete_rule(Name=FUNCTION)
    changed(
        account,
        "schedules ingest",
        Outcome.FAILED,
        "frazil-dev-maintain is DISABLED",
        f"rule {FUNCTION} does not exist",
    )


def test_a_job_that_follows_needs_no_schedule_of_drains(account: Account) -> None:
    account.client("scheduler").delete_schedule(GroupName="frazil-dev", Name="frazil-dev-ingest")
    changed(account, "schedules ingest", Outcome.FAILED)
    account.want(Mode.FOLLOW)
    changed(account, "schedules ingest", Outcome.SHOWN)


def test_a_generation_that_was_given_up_fails(account: Account) -> None:
    account.store.put(state_key("ingest"), RolloutState().with_given_up(account.desired).document())
    changed(account, "generation ingest", Outcome.FAILED, "generation 3 was given up", "--again")
    account.store.put(state_key("ingest"), RolloutState().document())
    changed(account, "generation ingest", Outcome.NOT_YET)


def test_alarms_without_data_fail_after_three_hours_and_raised_ones_are_named(account: Account) -> None:
    _alarm(account, "frazil-dev-late", "ALARM")
    changed(account, "alarms", Outcome.SHOWN, "raised: frazil-dev-late")
    _alarm(account, "frazil-dev-silent", "INSUFFICIENT_DATA")
    changed(account, "alarms", Outcome.NOT_YET, "frazil-dev-silent")
    account.now += timedelta(hours=4)
    changed(account, "alarms", Outcome.FAILED, "no data for frazil-dev-silent")


def test_a_test_message_is_an_alarm_that_is_raised_once(account: Account) -> None:
    changed(account, "alarm topic", Outcome.SHOWN, publish=True)
    assert account.resources.raised == ("frazil-dev-not-started",)
    account.resources.action = Action(at=account.now - timedelta(days=1), is_done=True, summary="an earlier one")
    changed(account, "alarm topic", Outcome.FAILED, "no action", publish=True)
    assert len(account.waited) == 10


def test_addresses_that_are_not_confirmed_fail_nothing(account: Account) -> None:
    account.client("sns").subscribe(TopicArn=NAMES.alarm_topic, Protocol="email", Endpoint="a@example.com")
    outcome, found = account.outcome("alarm topic")
    assert outcome in (Outcome.SHOWN, Outcome.NOT_YET), found  # moto confirms addresses at once
    account.client("sns").delete_topic(TopicArn=NAMES.alarm_topic)
    changed(account, "alarm topic", Outcome.FAILED, "does not exist")


def test_tables_are_read_as_the_reader_if_there_is_one(account: Account) -> None:
    changed(account, "tables", Outcome.SHOWN, "2 tables, as frazil-dev-reader")
    account.client("glue").delete_table(DatabaseName="shop", Name="users")
    changed(account, "tables", Outcome.FAILED, "shop.users")
    account.names = replace(NAMES, reader_role=None)
    changed(account, "tables", Outcome.NOT_HERE, "access.readers")


def test_on_the_stand_ins_what_they_cannot_show_never_passes(account: Account) -> None:
    account.names = replace(NAMES, is_local=True)
    found = account.smoke()
    hidden = subjects(name for name, each in found.items() if each.outcome is Outcome.NOT_HERE)
    of_runs = {"log group", "runtime", "missing objects", "metrics"}
    assert hidden == of_runs | {"reconciler", "alarms", "alarm topic"}
    assert worst(each.exit for each in found.values()) is Exit.SUCCESS
    assert "those of this machine: frazil 1.0.0" in found["runtime ingest"].found


def test_without_a_release_nothing_is_shown_and_nothing_fails(account: Account) -> None:
    account.store.objects.clear()
    [result] = account.smoke().values()
    assert (result.outcome, "no release is deployed" in result.found) == (Outcome.NOT_YET, True)


def test_a_service_that_refuses_is_a_failure_of_its_probe_only(account: Account) -> None:
    refusing = account_clients(REGION, keys=("testing", "testing"))("lambda")
    refusing.meta.events.register_first("before-send", _refuse)
    action = account.resources.action
    account.resources = Resources(lambda service: refusing if service == "lambda" else _client(service), region=REGION)
    account.resources.action = action
    found = account.smoke()
    failed = {name: each for name, each in found.items() if each.outcome is Outcome.FAILED}
    assert list(failed) == ["reconciler ingest"]
    assert failed["reconciler ingest"].exit is Exit.SERVICE_UNAVAILABLE
    assert "AWS refused GetFunction: AccessDeniedException" in failed["reconciler ingest"].found


def test_a_defect_of_one_probe_hides_no_other(account: Account) -> None:
    account.client("s3").put_object(Bucket="tables", Key="lake/shop.db/orders/metadata/1.metadata.json", Body=b"{}")
    found = account.smoke()
    failed = {name: each for name, each in found.items() if each.outcome is Outcome.FAILED}
    assert (list(failed), failed["tables"].exit) == (["tables"], Exit.FAULT)
    assert "defect of Frazil" in failed["tables"].remedy


def _refuse(**_: Any) -> Any:
    from botocore.awsrequest import AWSResponse

    body = io.BytesIO(b'{"message": "no"}')
    return AWSResponse("https://lambda", 403, {"x-amzn-errortype": "AccessDeniedException"}, _Body(body))


class _Body:
    def __init__(self, body: io.BytesIO) -> None:
        self._body = body

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self._body.read()


def test_a_job_with_patterns_only_is_shown_by_the_topics_that_match(account: Account) -> None:
    patterns = [each_topic(rf"{name}\..*", table=f"{name}.{{topic}}", value="text") for name in ("pay", "shop")]
    written = canonical(document([], patterns))
    account.store.put(document_key(written), written)
    wanted = replace(account.desired, document=document_key(written))
    account.store.put(desired_key("ingest"), desired_document(wanted))
    account.desired = wanted
    account.prove(**{"patterns[0]": Reached.CAUGHT_UP, "patterns[1]": Reached.CAUGHT_UP, "bad": Reached.NOTHING})
    said = {
        "documents ingest": "0 pipelines and 2 patterns in dev",
        "proof ingest": "1 pipelines have committed, 1 have caught up",
        "secret ingest": "orders has landed with it",
        "metrics ingest": "freshness_seconds of 2 pipelines",
        "tables": "2 tables",
    }
    for name, what in said.items():
        outcome, found = account.outcome(name)
        assert (outcome, what in found) == (Outcome.SHOWN, True), (name, found)
    account.prove(**{"patterns[0]": Reached.NOTHING})
    assert account.outcome("proof ingest")[1].startswith("nothing landed by patterns[0]")
