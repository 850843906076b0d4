"""The entry point of synthesis, as `cdktf.json` runs it: and what it refuses."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from frazil.release.manifest import Architecture, manifest
from infra.tf import App
from stacks.spec.deployments import DEPLOYMENTS, Access, dev, overlapping
from stacks.workflow import app
from stacks.workflow.deployed import Deployed, write
from tests.stacks.synthesised import release
from tests.stacks.test_first_deployment import DECLARED

CLASHING = """
from frazil.declaration import Pipeline, Table, Topic
pipelines = [Pipeline(topic=Topic(n, value="avro"), table=Table("s.t"), name=n) for n in ("a", "b", "c")]
"""
MOST_SECONDS = 15  # of the processor, imports included


def test_one_environment_is_synthesised_without_credentials_within_seconds(root: Path, tmp_path: Path) -> None:
    told = tmp_path / "manifest.json"
    write(tmp_path / "deployed" / "prod.json", Deployed(environment="prod"))
    told.write_bytes(manifest(release(Architecture.ARM64)))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(
        [sys.executable, "-m", "stacks.workflow.app"],
        cwd=root,
        # Nothing else: no credentials, no AWS.
        env={
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", str(tmp_path)),
            "CDKTF_OUTDIR": str(tmp_path / "cdktf.out"),
            "FRAZIL_ENVIRONMENTS": "prod",
            "FRAZIL_PIPELINES": "stacks/example.py",
            "FRAZIL_RELEASE": str(told),
            "FRAZIL_DEPLOYED": str(tmp_path / "deployed"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.returncode == 0, ended.stderr
    stacks = tmp_path / "cdktf.out" / "stacks"
    assert {each.name for each in stacks.iterdir()} == {"prod-foundation", "prod-confluent", "prod-ingestion"}
    ingestion = json.loads((stacks / "prod-ingestion" / "cdk.tf.json").read_text())
    assert release(Architecture.ARM64).key in ingestion["resource"]["aws_s3_object"]["desired"]["content"]
    assert [each.name for each in (tmp_path / "deployed").iterdir()] == ["prod.json"]
    assert '"name": "flights"' in (tmp_path / "deployed" / "prod.json").read_text()
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    assert spent < MOST_SECONDS


def test_environments_of_one_account_do_not_share_the_beginning_of_their_names() -> None:
    """The rights of a deployer follow names: `frazil-dev-*` are the resources of `dev-eu`, too."""
    ci = (f"arn:aws:iam::{dev.account}:role/ci",)
    own, other = replace(dev, access=Access(deployers=ci)), replace(dev, name="dev-eu")
    held = Path("policies/documents/deployer.json").read_text()
    assert "role{{iam_path}}{{prefix}}-*" in held
    [problem] = overlapping([own, other])
    assert (problem.path, "the deployer of dev" in problem.what) == ("deployment dev-eu", True)
    assert list(overlapping([own, replace(other, account="999999999999")])) == []
    assert list(overlapping([own, replace(other, name="deveu"), replace(other, name="eu-dev")])) == []
    assert list(overlapping([dev, other])) == [], "deployment makes no role for whoever deploys"
    assert list(overlapping([dev, replace(other, access=Access(deployers=ci))])) == []


def test_overlapping_environments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    ci = (f"arn:aws:iam::{dev.account}:role/ci",)
    both = {"dev": replace(dev, access=Access(deployers=ci)), "dev-eu": replace(dev, name="dev-eu")}
    settings = {"FRAZIL_ENVIRONMENTS": "dev", "FRAZIL_PIPELINES": "p.py", "FRAZIL_RELEASE": "none"}
    assert app.main(settings, both) == 2
    assert "deployment dev-eu: the deployer of dev may change" in capsys.readouterr().err


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What is told on stderr when it ends with 2; nothing is written then."""
    monkeypatch.chdir(tmp_path)

    def told(**settings: str) -> str:
        assert app.main(settings) == 2
        assert not list(tmp_path.rglob("cdk.tf.json"))
        out, err = capsys.readouterr()
        assert out == ""
        return err

    return told


ALL = {"FRAZIL_ENVIRONMENTS": "dev", "FRAZIL_PIPELINES": "pipelines.py", "FRAZIL_RELEASE": "none"}


@pytest.mark.parametrize("missing", ALL)
@pytest.mark.parametrize("empty", [None, "", " "])
def test_nothing_is_deployed_by_a_variable_that_was_forgotten(
    refused: Callable[..., str], missing: str, empty: str | None
) -> None:
    settings = {name: value for name, value in ALL.items() if name != missing}
    told = refused(**settings if empty is None else {**settings, missing: empty})
    assert told.startswith(f"error: {missing} must be set. ")
    assert told.count("\n") == 1


def test_all_variables_that_are_missing_are_told_at_once(refused: Callable[..., str]) -> None:
    assert refused().startswith("error: FRAZIL_ENVIRONMENTS, FRAZIL_PIPELINES, FRAZIL_RELEASE must be set. ")


def test_an_environment_that_is_none_is_told_with_those_that_are(refused: Callable[..., str]) -> None:
    told = refused(**{**ALL, "FRAZIL_ENVIRONMENTS": "dev,production"})
    assert told == "error: the environment production does not exist. Name one of dev, staging, prod, local\n"


def test_every_problem_of_the_pipelines_is_told(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "pipelines.py").write_text(CLASHING)
    assert refused(**ALL).count("a table has one writer") == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("topics = 3", "`topics` is of type int, not a list. Write topics = [ManagedTopic"),
        ("retired = ['orders']", "`retired[0]` is of type str, not a Retired. Write retired = [Retired(…), …]"),
    ],
)
def test_topics_and_retired_objects_are_lists_of_their_class(
    refused: Callable[..., str], tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "pipelines.py").write_text(f"{DECLARED}{text}\n")
    assert refused(**ALL).startswith(f"error: pipelines.py: {said}")


def test_patterns_of_the_file_are_deployed(refused: Callable[..., str], tmp_path: Path) -> None:
    line = """pipelines = [each_topic(r"{match}", table="shop.{{topic}}", value="avro")]"""
    (tmp_path / "pipelines.py").write_text(f"from frazil import each_topic\n{line.format(match='.*')}\n")
    assert "patterns[0].match" in refused(**ALL)


def test_new_types_of_the_file_are_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "pipelines.py").write_text(
        "from frazil import *\n"
        "events = Topic('events', value=Avro(subject_strategy='topic_record'))\n"
        "to = {'shop.*': 'shop.{name}'}\n"
        "pipelines = [*routes(events, by=RecordName(), to=to, otherwise=Table('shop.other'))]\n"
    )
    assert "the types shop.* of events have no deployment yet. Name each type" in refused(**ALL)


@pytest.mark.parametrize("setting", ["FRAZIL_PIPELINES", "FRAZIL_RELEASE"])
def test_a_file_that_is_not_there_is_an_error_of_one_line(
    refused: Callable[..., str], setting: str, tmp_path: Path
) -> None:
    (tmp_path / "pipelines.py").write_text(DECLARED)
    assert refused(**{**ALL, setting: "missing"}).count("\n") == 1


def test_what_is_deployed_is_not_deployed_again_without_its_file(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "pipelines.py").write_text(DECLARED)
    (tmp_path / "manifest.json").write_bytes(manifest(release(Architecture.ARM64)))
    assert "deployed/dev.json: the file is missing" in refused(**{**ALL, "FRAZIL_RELEASE": "manifest.json"})
    assert not (tmp_path / "deployed").exists()


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_a_topic_whose_declaration_is_deleted_stays_until_it_is_retired(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(app, "App", lambda: App(outdir=str(tmp_path / "cdktf.out")))
    settings = {**ALL, "FRAZIL_ENVIRONMENTS": name}
    file, stack = tmp_path / "pipelines.py", tmp_path / "cdktf.out" / "stacks" / f"{name}-confluent" / "cdk.tf.json"
    [deployed] = {True: [".frazil/deployed"], False: ["deployed"]}[DEPLOYMENTS[name].is_local]
    file.write_text(DECLARED)
    assert app.main(settings) == 0
    first = (tmp_path / deployed / f"{name}.json").read_bytes()
    file.write_text(DECLARED + "topics = []\n")
    assert app.main(settings) == 2
    assert f"deployed {name}: confluent_kafka_topic orders: it is no longer declared" in capsys.readouterr().err
    assert (tmp_path / deployed / f"{name}.json").read_bytes() == first
    retired = 'from stacks.workflow.deployed import Retired\nretired = [Retired("confluent_kafka_topic", "orders", reason="moved")]\n'
    file.write_text(f"{DECLARED}topics = []\n{retired}")
    assert app.main(settings) == 0
    synthesised = json.loads(stack.read_text())
    assert "confluent_kafka_topic" not in synthesised["resource"]
    [forgotten] = synthesised["removed"]
    assert forgotten["from"].startswith("confluent_kafka_topic.topic-orders_")
    assert forgotten["lifecycle"] == {"destroy": False}
