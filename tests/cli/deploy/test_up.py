"""`frazil deploy up`: its steps in order, each of which may be the last one of an attempt that the next one finishes.

The program that plans and applies is replaced; `tests/stacks/workflow/test_deploy.py` runs it. S3 is moto, the runs are in memory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner, Result

from frazil.cli.deploy import up as deploy
from frazil.cli.jobs import aws, reconcile
from frazil.cli.main import app
from frazil.clients.emr import Emr
from frazil.declaration import canonical, environment_document
from frazil.errors import FrazilError
from frazil.project.environments import environment
from frazil.release.installed import Installed
from frazil.release.manifest import Release, manifest
from frazil.rollout.desired import desired_document, desired_key
from frazil.rollout.group_jobs import ingest_jobs
from frazil.rollout.readiness import Readiness
from frazil.smoke.probe import Answer, Probe, answers
from tests.support.deploying_project import describe, make_project
from tests.support.fake_emr import refused
from tests.support.rollout_world import BUCKET, DEV, JOB, World, desired
from tests.support.rollout_world import release as described

HEALTHY = Probe(f"run {JOB}", lambda: Answer.shown("run 1 is RUNNING"))
HIDDEN = Probe(f"metrics {JOB}", lambda: Answer.not_here("nothing makes metrics"))
BROKEN = Probe("alarms", lambda: Answer.failed("no alarm exists", "Deploy again"))
GIVEN = {"buckets": {}, "key": None, "databases": {}, "networks": []}

APPLIES = """
options, stacks = arguments[:arguments.index("--")], arguments[arguments.index("--") + 2:]
failing = pathlib.Path("failing")
with open("together", "a") as file:
    file.write(json.dumps(stacks) + "\\n")
for stack in stacks:
    with open("log", "a") as log:
        log.write(json.dumps([*options, stack, os.environ["FRAZIL_RELEASE"]]) + "\\n")
    if failing.exists() and failing.read_text() == stack:
        failing.unlink()
        sys.exit(6)
[outputs] = [each.partition("=")[2] for each in arguments if each.startswith("--outputs=")]
told = {"environment_document": "s3://artifacts/documents/e.json", "former_applications": ["app1"]}
stacks = {f"dev-{stack}": told if stack == "ingestion" else {}}
pathlib.Path(outputs).write_text(json.dumps(stacks))
"""


@dataclass
class Shop:
    """A project, with what its account holds."""

    folder: Path
    world: World
    s3: Any
    manifest: Path
    probes: list[Probe] = field(default_factory=lambda: [HEALTHY, HIDDEN])

    def deploy(self, *options: str, command: str = "up") -> Result:
        return CliRunner().invoke(app, ["deploy", command, "dev", "--release", str(self.manifest), *options])

    def stacks(self) -> list[str]:
        log = self.folder / "log"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        log.unlink(missing_ok=True)
        return [line[-2] for line in lines]

    def together(self) -> list[list[str]]:
        """Return the stacks of each run of the program."""
        file = self.folder / "together"
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        file.unlink()
        return lines

    def fail(self, stack: str) -> None:
        (self.folder / "failing").write_text(stack)

    def uploaded(self) -> list[str]:
        listed = self.s3.list_objects_v2(Bucket=BUCKET, Prefix="releases/").get("Contents", [])
        return [each["Key"] for each in listed]


def built(folder: Path) -> Release:
    """Write a release whose files are those of its manifest."""
    folder.mkdir()
    files = []
    for file in described().files:
        content = file.name.encode()
        (folder / file.name).write_bytes(content)
        files.append(replace(file, sha256=hashlib.sha256(content).hexdigest(), size_bytes=len(content)))
    made = replace(described(), files=tuple(files))
    (folder / "manifest.json").write_bytes(manifest(made))
    return made


class OfTheDeployer:
    """EMR Serverless, as it answers the deployer's role: it neither starts nor ends a run."""

    def __init__(self, emr: Any) -> None:
        self._emr = emr

    def __getattr__(self, name: str) -> Any:
        return getattr(self._emr, name)

    def start_job_run(self, **request: Any) -> Any:
        raise refused("AccessDeniedException", "not authorized to perform: emr-serverless:StartJobRun")

    def cancel_job_run(self, **request: Any) -> Any:
        raise refused("AccessDeniedException", "not authorized to perform: emr-serverless:CancelJobRun")


def passing(world: World, seconds: float) -> None:
    """Let time pass, in which the deployed reconcilers make their passes."""
    world.time.sleep(seconds)
    for job in ingest_jobs(world.store):
        with suppress(FrazilError):  # the service counts it
            world.reconciler().one_pass(job, holder="function")


@pytest.fixture
def shop(folder: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    release = built(folder / "dist")
    make_project(folder, APPLIES)
    declared = {"label": release.label, "architecture": release.architecture, "release": "none", "given": GIVEN}
    describe(folder, **declared, artifact_bucket=BUCKET, trusted_keys=[], region="eu-central-1")
    monkeypatch.setattr(aws, "emr", lambda place, secrets: Emr(OfTheDeployer(world.emr), clock=world.time.clock))
    monkeypatch.setattr(reconcile.time, "sleep", partial(passing, world))
    world.want(desired())
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket=BUCKET)
        client.put_object(Bucket=BUCKET, Key="documents/e.json", Body=canonical(environment_document(DEV)))
        made = Shop(folder, world, client, folder / "dist" / "manifest.json")
        monkeypatch.setattr(deploy, "probed", lambda place, declared, secrets: list(answers(made.probes)))
        yield made


def test_all_steps_are_made_in_order_and_a_second_deployment_finishes_at_once(shop: Shop) -> None:
    ended = shop.deploy("--yes")
    assert ended.exit_code == 0, ended.output
    assert shop.stacks() == ["foundation", "confluent", "ingestion"]
    assert len(shop.uploaded()) == 1
    assert environment("dev") == DEV
    lines = ended.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[:4]] == ["upload", "environment", "reconcile", JOB]
    assert lines[3] == f"{JOB}: generation 1 runs"
    assert lines[-1] == "1 shown, 1 not shown here"
    again = shop.deploy("--yes")
    assert (again.exit_code, shop.stacks()) == (0, ["foundation", "confluent", "ingestion"])
    assert "upload: 0 of 9 files were new" in again.stdout
    assert len(shop.world.emr.active()) == 1


@pytest.mark.parametrize("stack", ["foundation", "confluent", "ingestion"])
def test_an_attempt_that_failed_anywhere_is_finished_by_the_next_one(shop: Shop, stack: str) -> None:
    shop.fail(stack)
    assert shop.deploy("--yes").exit_code == 6
    assert shop.stacks()[-1] == stack
    assert len(shop.uploaded()) == 1, "the release is there before the function that runs it"
    assert shop.world.emr.active() == []
    assert shop.deploy("--yes").exit_code == 0
    assert len(shop.world.emr.active()) == 1


def test_all_stacks_are_planned_at_once_but_for_a_bucket_that_does_not_exist_and_for_a_group(shop: Shop) -> None:
    assert shop.deploy("--yes").exit_code == 0
    assert shop.together() == [["foundation", "confluent", "ingestion"]]
    split = [["foundation", "confluent"], ["ingestion"]]
    shop.deploy("--yes", "--group", "payments")  # its job has no desired state here
    assert shop.together() == split
    for each in shop.s3.list_objects_v2(Bucket=BUCKET)["Contents"]:
        shop.s3.delete_object(Bucket=BUCKET, Key=each["Key"])
    shop.s3.delete_bucket(Bucket=BUCKET)
    ended = shop.deploy("--yes")  # nothing makes the bucket here
    assert (ended.exit_code, "NoSuchBucket" in ended.stderr) == (3, True), ended.output
    assert shop.together() == split[:1]


@pytest.mark.long
def test_a_generation_that_is_rolled_back_ends_with_1(shop: Shop) -> None:
    assert shop.deploy("--yes").exit_code == 0
    shop.world.want(desired(2))
    shop.world.readiness[2] = Readiness.NOTHING_YET
    ended = shop.deploy("--yes")
    assert (ended.exit_code, "2 was given up" in ended.stdout) == (1, True), ended.output


@pytest.mark.long
def test_a_probe_that_fails_ends_with_1_and_the_deployment_is_complete(shop: Shop) -> None:
    shop.probes.append(BROKEN)
    ended = shop.deploy("--yes")
    assert ended.exit_code == 1, ended.output
    assert len(shop.world.emr.active()) == 1
    assert "no alarm exists. Deploy again" in ended.stdout
    assert ended.stdout.splitlines()[-1] == (
        "smoke: the deployment is complete, and a probe failed. Repeat it: frazil deploy smoke dev"
    )
    ended = shop.deploy("--yes", "--no-smoke")
    assert (ended.exit_code, "no alarm" in ended.stdout) == (0, False), ended.output


def test_a_given_object_that_cannot_be_used_is_2_before_anything_is_applied(shop: Shop) -> None:
    describe(shop.folder, given={**GIVEN, "buckets": {"tables": "missing"}})
    ended = shop.deploy("--yes")
    assert (ended.exit_code, shop.stacks()) == (2, []), ended.output
    assert "existing.buckets.tables: the bucket missing does not exist" in ended.output
    ended = CliRunner().invoke(app, ["deploy", "apply", "dev"])
    assert (ended.exit_code, "the bucket missing does not exist" in ended.output, shop.stacks()) == (2, True, [])


@pytest.mark.long
def test_options_are_handed_on(shop: Shop) -> None:
    shop.deploy("--accept-danger", "it is a test", "--again", "--acceptances", "a.json")
    first = json.loads((shop.folder / "log").read_text().splitlines()[0])
    assert first[:3] == ["--accept-danger=it is a test", f"--acceptances={shop.folder / 'a.json'}", "--again"]
    assert first[-1] == str(shop.manifest)


def test_one_group_is_deployed_and_reconciled_alone(shop: Shop) -> None:
    assert shop.deploy("--yes").exit_code == 0
    one = desired(job="ingest-payments")
    shop.world.store.put(desired_key(one.job), desired_document(one))
    shop.world.emr.started = lambda request: None
    (shop.folder / "log").unlink()
    ended = shop.deploy("--yes", "--group", "payments")
    assert ended.exit_code == 0, ended.output
    asked = [json.loads(line) for line in (shop.folder / "log").read_text().splitlines()]
    assert [("--group=payments" in line, line[-2]) for line in asked] == [
        (False, "foundation"),
        (False, "confluent"),
        (True, "ingestion"),
    ]
    assert [any(each.startswith("--deployed-pipelines=") for each in line) for line in asked] == [False, False, True]
    assert "ingest-payments: generation 1 runs" in ended.stdout.splitlines()
    assert f"{JOB}: generation 1 runs" not in ended.stdout.splitlines(), "nothing waits for the others"
    assert {run.tags["frazil:job"]: run.tags["frazil:generation"] for run in shop.world.emr.active()} == {
        JOB: "1",
        "ingest-payments": "1",
    }


def test_without_a_release_nothing_runs(shop: Shop) -> None:
    ended = CliRunner().invoke(app, ["deploy", "up", "dev", "--release", "none"])
    assert (ended.exit_code, shop.uploaded(), shop.world.emr.active()) == (0, [], []), ended.output
    assert "runs: none: no release is deployed" in ended.stdout


def test_a_project_without_a_release_builds_that_of_its_wheel_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    sha256, builds = "d" * 64, []

    def built_of_wheel(root: Path, folder: Path, *, label_name: str, architecture: Any) -> Release:
        builds.append(folder.relative_to(root))
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = replace(built(folder), git_commit=None, wheel_sha256=sha256)
        (folder / "manifest.json").write_bytes(manifest(made))
        return made

    monkeypatch.setattr(deploy, "source_at", lambda root: Installed(version="1", content={}, inputs=root))
    monkeypatch.setattr(Installed, "wheel_sha256", sha256)
    monkeypatch.setattr(deploy, "built", built_of_wheel)
    ended = CliRunner().invoke(app, ["deploy", "up", "dev", "--yes"])
    assert ended.exit_code == 0, ended.output
    place = ".frazil/releases/dev/dddddddddddd"
    assert (builds, f"of wheel dddddddddddd, in {place}" in ended.output) == ([Path(place)], True)
    assert (len(shop.uploaded()), len(shop.world.emr.active())) == (1, 1)
    again = CliRunner().invoke(app, ["deploy", "up", "dev", "--yes"])
    assert (again.exit_code, len(builds), "is built already" in again.output) == (0, 1, True), again.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "environment nowhere: it is not declared"),
        (["dev", "--release", "missing.json"], "the file is not the manifest of a release"),
    ],
)
def test_wrong_input_is_2(shop: Shop, arguments: list[str], said: str) -> None:
    ended = CliRunner().invoke(app, ["deploy", "up", *arguments])
    assert (ended.exit_code, said in ended.stderr) == (2, True), ended.output
    assert shop.stacks() == []


def test_a_release_for_other_processors_is_refused_before_anything_is_applied(shop: Shop) -> None:
    describe(shop.folder, architecture="ARM64")
    ended = shop.deploy("--yes")
    assert (ended.exit_code, shop.stacks()) == (2, []), ended.output
