"""The local cloud: a release is uploaded, reconciled and really runs; runs are swapped, stopped and fired, and no record is
lost or doubled. Everything is asked by the command line, as a person would.
"""

from __future__ import annotations

import json
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import boto3
import psutil
import pytest
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.cli.release import built
from frazil.clients.object_store import ObjectStore, Stored
from frazil.declaration import canonical, environment_document
from frazil.declaration.documents.document import document
from frazil.errors import ReleaseIncomplete
from frazil.local.process import noted
from frazil.local.services import LocalServices, down, up
from frazil.release.emr_labels import NEWEST
from frazil.release.manifest import MANIFEST, Architecture, Release, Role, manifest
from frazil.release.upload import document_key
from frazil.rollout.desired import Desired, Mode, Worker, Workers, desired_document, desired_key
from frazil.rollout.function_settings import EXECUTION, HANDLER, TIMEOUT_SECONDS, Settings
from frazil.rollout.run_proof import proof_prefix
from frazil.rollout.state import stored_state
from stacks.spec.deployments import DEPLOYMENTS
from stacks.workflow.describe import described
from tests.standin.aws.launch import PART, REGION, SERVER, endpoint_of, glue_environment, with_aws
from tests.standin.aws.scheduler import run_schedule
from tests.support.deploying_project import describe, make_project
from tests.support.fake_time import until
from tests.support.shop import Shop

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(900)]

ROLE = "arn:aws:iam::123456789012:role/frazil-local-ingest"
BUCKET = "frazil-artifacts"
ENDED = ("SUCCESS", "FAILED", "CANCELLED")
TWO_PARTITIONS = ("--setting", "spark.sql.shuffle.partitions=2")
SMALL = Worker(cores=1, memory_gb=2)
LOCAL = replace(DEPLOYMENTS["local"], region=REGION)
FUNCTION = LOCAL.names.role("reconcile-ingest")
SETTINGS = Settings(job="ingest", bucket=BUCKET, metrics_namespace="Frazil", silent_seconds=3600)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cloud")


@pytest.fixture(scope="module")
def first(root: Path, folder: Path) -> Release:
    try:
        return built(root, folder / "first", label_name=NEWEST, architecture=Architecture.X86_64)
    except ReleaseIncomplete as missing:
        if "could not fetch" in missing.what:
            pytest.skip(f"no package index: {missing}")
        raise


@pytest.fixture(scope="module")
def second(folder: Path, first: Release) -> Release:
    """Another release: a later version, whose entry point is another file."""
    shutil.copytree(folder / "first", folder / "second")
    entry = folder / "second" / first.the(Role.INGEST).name
    entry.write_bytes(entry.read_bytes() + b"\n# the second release\n")
    data = entry.read_bytes()
    sha256 = document_key(data).split("/")[1].removesuffix(".json")
    changed = replace(first.the(Role.INGEST), sha256=sha256, size_bytes=len(data))
    files = tuple(changed if file.role is Role.INGEST else file for file in first.files)
    release = replace(first, version="0.9.9", files=files)
    (folder / "second" / MANIFEST).write_bytes(manifest(release))
    return release


@pytest.fixture
def world(folder: Path) -> Iterator[LocalServices]:
    yield with_aws(up(folder))
    down(folder)


@dataclass
class Cloud:
    world: LocalServices
    shop: Shop
    application: str
    folder: Path

    def client(self, service: str) -> Any:
        endpoint = endpoint_of(self.world.home)
        return boto3.client(service, endpoint_url=endpoint, region_name=REGION)

    def put(self, key: str, data: bytes) -> str:
        """As Terraform does."""
        self.client("s3").put_object(Bucket=BUCKET, Key=key, Body=data)
        return key

    def deploy(self, release: Release, generation: int, mode: Mode = Mode.FOLLOW) -> None:
        """What the ingestion stack writes: two documents, and desired state."""
        glue = glue_environment(self.world)
        store = glue.object_store
        assert store is not None
        place = replace(
            glue,
            name="local",
            object_store=replace(store, access_key_id=None, secret_access_key=None),
            artifact_bucket=BUCKET,
            emr_application=self.application,
        )
        told = canonical(environment_document(place))
        (self.folder / "local.json").write_bytes(told)
        pipelines = canonical(document([self.shop.pipeline]))
        (self.folder / "pipelines.json").write_bytes(pipelines)
        wanted = Desired(
            job="ingest",
            generation=generation,
            label=NEWEST,
            application=self.application,
            release=release.key,
            document=self.put(document_key(pipelines), pipelines),
            environment=self.put(document_key(told), told),
            execution_role=ROLE,
            log_uri=f"s3://{BUCKET}/logs/",
            mode=mode,
            arguments=TWO_PARTITIONS,
            workers=Workers(driver=SMALL, executor=SMALL),
            calm_seconds=10,
            proof_seconds=300,
        )
        self.put(desired_key("ingest"), desired_document(wanted))

    def deploy_reconciler(self, release: Release) -> None:
        """What the ingestion stack makes: the function of the release, its rule and the schedule of drains."""
        role = self.client("iam").create_role(RoleName=FUNCTION, AssumeRolePolicyDocument="{}")
        function = self.client("lambda").create_function(
            FunctionName=FUNCTION,
            Role=role["Role"]["Arn"],
            Runtime="python3.11",
            Handler=HANDLER,
            Code={"S3Bucket": BUCKET, "S3Key": release.the(Role.RECONCILER).key},
            Timeout=TIMEOUT_SECONDS,
            Environment={"Variables": SETTINGS.variables()},
        )
        pattern = {"source": ["aws.emr-serverless"], "detail": {"applicationId": [self.application]}}
        events = self.client("events")
        events.put_rule(Name=FUNCTION, EventPattern=json.dumps(pattern))
        events.put_targets(Rule=FUNCTION, Targets=[{"Id": "1", "Arn": function["FunctionArn"]}])
        scheduler = self.client("scheduler")
        scheduler.create_schedule_group(Name=LOCAL.names.schedule_group)
        for name in (FUNCTION, LOCAL.names.role("ingest"), LOCAL.names.role("maintain")):
            scheduler.create_schedule(
                GroupName=LOCAL.names.schedule_group,
                Name=name,
                ScheduleExpression="rate(15 minutes)",
                FlexibleTimeWindow={"Mode": "OFF"},
                Target={
                    "Arn": function["FunctionArn"],
                    "RoleArn": ROLE,
                    "Input": json.dumps({EXECUTION: "<aws.scheduler.execution-id>"}),
                },
            )

    def deploy_alarms(self) -> None:
        """What the stacks make for operators: the topic, and an alarm."""
        self.client("sns").create_topic(Name=LOCAL.names.prefix, Attributes={"KmsMasterKeyId": "alias/frazil-local"})
        self.client("cloudwatch").put_metric_alarm(
            AlarmName=LOCAL.names.role("late"),
            MetricName="freshness_seconds",
            Namespace="Frazil",
            Statistic="Maximum",
            Period=300,
            EvaluationPeriods=2,
            Threshold=600,
            ComparisonOperator="GreaterThanThreshold",
        )

    def proofs(self) -> list[Stored]:
        """The proofs of runs, the oldest run first."""
        store = ObjectStore(self.client("s3"), BUCKET)
        return [held for key in store.keys(proof_prefix("ingest")) if (held := store.read(key)) is not None]

    def frazil(self, *arguments: str, code: int = 0) -> Any:
        """A command's JSON answer."""
        ended = CliRunner().invoke(app, [*arguments, "--json"])
        assert ended.exit_code == code, ended.output
        return json.loads(ended.stdout)

    @property
    def at(self) -> str:
        return str(self.folder / "local.json")

    def run(self, number: int = 0) -> dict[str, Any]:
        """A run, 0 the newest."""
        told: dict[str, Any] = self.frazil("jobs", "list", self.at)["runs"][number]
        return told

    def events(self, run: str) -> list[dict[str, Any]]:
        """What the driver of a run logged."""
        parts = self.frazil("jobs", "logs", self.at, run)["parts"]
        return [json.loads(line) for part in parts for line in part["lines"] if line.startswith('{"')]

    def lands_all(self) -> None:
        """Wait until every record is landed, or the run has ended."""

        def is_over() -> bool:
            return len(self.shop.landed()) >= len(self.shop.journal) or self.run()["state"] in ENDED

        until(is_over, seconds=180)
        run = self.run()
        assert run["state"] not in ENDED, (run, self.frazil("jobs", "logs", self.at)["parts"])

    def assert_proven(self) -> None:
        """Every record is in the table once, and `frazil verify` says so too."""
        self.shop.assert_each_record_once()
        name = self.shop.pipeline.name
        told = self.frazil(
            "verify", name, "--pipelines", str(self.folder / "pipelines.json"), "--env", self.at, "--deep"
        )
        assert told["outcome"] == "proven"


@pytest.fixture
def cloud(
    world: LocalServices,
    folder: Path,
    first: Release,
    second: Release,
    tmp_path: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Cloud:
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(variable, "test")
    made = Cloud(world, Shop(world, cast(Any, None), glue_environment(world), name), "", tmp_path)
    made.client("s3").create_bucket(Bucket=BUCKET)
    made.application = made.client("emr-serverless").create_application(
        name="frazil", releaseLabel=NEWEST, type="SPARK", clientToken=uuid.uuid4().hex
    )["applicationId"]
    made.deploy(first, 1)
    for one in ("first", "second"):
        made.frazil("release", "upload", made.at, "--from", str(folder / one))
    return made


@contextmanager
def producing(produce: Callable[[int], None]) -> Iterator[None]:
    """Have records produced all the time, in small portions, by another thread."""
    enough = threading.Event()

    def go_on() -> None:
        number = 0
        while not enough.wait(0.1):
            produce(number)
            number += 1

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


def test_a_streaming_run_is_swapped_for_another_release_and_no_record_is_lost_or_doubled(
    cloud: Cloud, first: Release, second: Release
) -> None:
    shop = cloud.shop
    schema = shop.register()
    shop.produce(shop.orders(50, schema))
    assert cloud.frazil("jobs", "reconcile", cloud.at)["runs"] == 1
    old = cloud.run()
    assert (old["state"], old["generation"], old["release"]) == ("RUNNING", 1, first.version)
    assert len(shop.landed()) == 50
    cloud.assert_proven()

    def produce(number: int) -> None:
        shop.produce(shop.orders(20, schema, first=1000 + number * 20))

    with producing(produce):
        until(lambda: len(shop.landed()) > 100, seconds=60)
        cloud.deploy(second, 2)
        told = cloud.frazil("jobs", "reconcile", cloud.at)
        assert [step["step"] for step in told["steps"] if step["step"] != "wait"] == [
            "cancel run",
            "start generation",
            "proven generation",
        ]
    cloud.lands_all()
    cloud.assert_proven()
    new = cloud.run()
    assert (new["state"], new["generation"], new["release"]) == ("RUNNING", 2, second.version)
    assert cloud.run(1)["state"] == "CANCELLED"
    said = cloud.events(old["run"])
    assert said[-1]["event"] == "pipeline_finished", "it was let end between two batches"
    assert cloud.frazil("jobs", "reconcile", cloud.at, "--check")["drift"] is False

    # An operator stops the pipeline, and starts it again: what came meanwhile is landed then.
    before = len(shop.landed())
    told = cloud.frazil("jobs", "stop", shop.pipeline.name, "--environment", cloud.at)
    assert (told["runs"], told["stopped"]) == (None, [shop.pipeline.name])
    assert cloud.run()["state"] == "CANCELLED"
    shop.produce(shop.orders(5, schema, first=900_000))
    assert len(shop.landed()) == before
    assert cloud.frazil("jobs", "start", shop.pipeline.name, "--environment", cloud.at)["runs"] == 2
    cloud.lands_all()
    cloud.assert_proven()

    # The world's end is the run's.
    (process,) = (each for each in noted(cloud.world.home / PART) if each.name != SERVER)
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    down(cloud.world.home.parent)
    _, alive = psutil.wait_procs(family, timeout=5)
    assert not alive
    assert noted(cloud.world.home / PART) == []


def test_the_deployed_reconciler_drains_by_its_schedule_and_proves_a_release_by_events(
    cloud: Cloud, first: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = cloud.shop
    schema = shop.register()
    shop.produce(shop.orders(30, schema))
    cloud.deploy(first, 1, Mode.DRAIN)
    cloud.deploy_reconciler(first)
    monkeypatch.chdir(cloud.world.home.parent)

    def fired(execution: str) -> Any:
        name = LOCAL.names.role("ingest")
        return run_schedule(endpoint_of(cloud.world.home), name, region=REGION, execution=execution).answer["steps"]

    def proven(generation: int) -> bool:
        state = stored_state(ObjectStore(cloud.client("s3"), BUCKET), "ingest")
        return state.proven is not None and state.proven.generation == generation

    assert [step["step"] for step in fired("e1")] == ["start"]
    until(lambda: proven(1), seconds=180)  # by the event of the run's end, and its own proof
    assert cloud.run()["state"] == "SUCCESS"
    cloud.assert_proven()

    shop.produce(shop.orders(20, schema, first=1000))
    assert [step["step"] for step in fired("e2")] == ["start"]
    fired("e2")
    until(lambda: cloud.run()["state"] in ENDED, seconds=180)
    cloud.assert_proven()
    assert len(cloud.frazil("jobs", "list", cloud.at)["runs"]) == 2
    assert_probed(cloud)
    log = (cloud.world.home / PART / "functions" / f"{FUNCTION}.log").read_text()
    passes = [json.loads(line) for line in log.splitlines() if '"event": "pass"' in line]
    assert {each["silent_pipelines"] for each in passes} == {0}
    proofs = [json.loads(each.data) for each in cloud.proofs()]
    assert len(proofs) == 2
    assert all(each["began_ms"] <= each["reported"][shop.pipeline.name] for each in proofs)


def assert_probed(cloud: Cloud) -> None:
    """`frazil deploy smoke` shows what a run on this machine can show, and passes nothing else."""
    cloud.deploy_alarms()
    make_project(Path())
    describe(Path(), LOCAL.name, **described(LOCAL, "none"))
    first = next(each for each in cloud.events(cloud.run()["run"]) if "event" in each)
    assert (first["event"], set(first["versions"])) == ("job_started", {"frazil", "python", "spark", "iceberg"})
    told = cloud.frazil("deploy", "smoke", cloud.at)
    outcomes: dict[str, set[str]] = {}
    for each in told["probes"]:
        outcomes.setdefault(each["outcome"], set()).add(each["name"])
    assert outcomes == {
        "shown": {
            *("run ingest", "log files ingest", "documents ingest", "proof ingest", "generation ingest"),
            *("schedules ingest", "tables"),
        },
        "not shown here": {
            *("log group ingest", "log group maintain", "runtime ingest", "missing objects ingest", "secret ingest"),
            *("metrics ingest", "reconciler ingest", "alarms", "alarm topic"),
        },
        "not yet": {"run maintain", "log files maintain"},
    }, told["probes"]
    [runtime] = [each for each in told["probes"] if each["name"] == "runtime ingest"]
    assert f"python {first['versions']['python']}" in runtime["found"]
