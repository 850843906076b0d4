"""`python -m stacks.workflow.deploy`, with Terraform's own plans of resources that need no provider: one stack, reviewed and applied."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from frazil.declaration import InvalidDeclaration, Pipeline, Spark, Table, Topic, canonical, each_topic
from frazil.declaration.documents.document import document
from policies.review import dangers
from stacks.workflow import deploy
from tests.stacks.workflow.test_apply import Project

pytestmark = pytest.mark.skipif(not shutil.which("terraform"), reason="terraform is not installed")
NOW = datetime(2026, 11, 25, tzinfo=UTC)
REFUSING = {
    "input": "z",
    "triggers_replace": "${terraform_data.a.id}",
    "lifecycle": {"precondition": [{"condition": '${terraform.workspace == "x"}', "error_message": "no"}]},
}

Ran = Callable[..., tuple[int, str, str]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.setattr(deploy, "synthesise", made.synthesise)
    return made


@pytest.fixture
def ran(project: Project, capsys: pytest.CaptureFixture[str]) -> Ran:
    def run(*options: str, ask: deploy.Ask | None = None) -> tuple[int, str, str]:
        status = deploy.main(["dev", "ingestion", *options], project.settings, NOW, ask=ask)
        assert not project.private[-1].exists(), "the plan file is stored nowhere"
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_a_plan_is_applied_once_and_its_outputs_are_written(project: Project, ran: Ran, tmp_path: Path) -> None:
    file = tmp_path / "outputs.json"
    project.declare("x", output={"place": {"value": "s3://b/k"}, "key": {"value": "hunter2", "sensitive": True}})
    status, out, err = ran("--yes", f"--outputs={file}")
    assert (status, project.state()) == (0, "x"), out + err
    assert "dev-ingestion: applied +1 ~0 -0 ±0, plan " in out
    assert json.loads(file.read_text()) == {"dev-ingestion": {"place": "s3://b/k"}}, "no secret is written"
    file.unlink()
    status, out, _ = ran("--yes", f"--outputs={file}")
    assert (status, out) == (0, "dev-ingestion: nothing changes\n")
    assert file.is_file(), "a repeated deployment finds the outputs"


def test_the_end_of_the_input_is_no_confirmation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert deploy._asked("Apply? ") is False


def test_nothing_is_applied_unless_somebody_confirms(project: Project, ran: Ran) -> None:
    questions: list[str] = []

    def answer(is_wanted: bool) -> Callable[[str], bool]:
        return lambda question: questions.append(question) or is_wanted

    status, out, _ = ran()
    assert (status, project.state(), "Give --yes" in out) == (1, None, True)
    assert ran(ask=answer(False))[0] == 1
    assert project.state() is None
    assert ran(ask=answer(True))[0] == 0
    assert project.state() == "x"
    assert questions == ["Apply dev-ingestion (+1 ~0 -0 ±0)? [y/N] "] * 2


def test_a_danger_is_refused_unless_it_is_accepted(project: Project, ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dangers, "HOLDS_DATA", {"terraform_data": "its value"})
    assert ran("--yes")[0] == 0
    project.content["resource"]["terraform_data"] = {"b": {"input": "z"}}
    project.content["removed"] = [{"from": "terraform_data.a", "lifecycle": {"destroy": False}}]
    status, out, err = ran("--yes")
    assert (status, project.state()) == (1, "x"), out + err
    assert "dev-ingestion: refused: " in out
    status, out, err = ran("--yes", "--accept-danger=it is a test")
    assert (status, "dev-ingestion: applied" in out) == (0, True), out + err


def test_a_plan_that_terraform_cannot_make_is_not_applied(project: Project, ran: Ran) -> None:
    assert ran("--yes")[0] == 0
    project.declare("y")
    project.content["resource"]["terraform_data"]["b"] = REFUSING
    status, _, err = ran("--yes", "--accept-danger=all")
    assert (status, project.state()) == (5, "x")
    assert "Resource precondition failed" in err


def test_a_failed_apply_is_6_and_the_next_one_finishes_it(project: Project, ran: Ran) -> None:
    fails = {"postcondition": [{"condition": "${self.output == self.input && false}", "error_message": "no"}]}
    content: Any = json.loads(json.dumps(project.content))
    project.content["resource"]["terraform_data"]["a"]["lifecycle"] = fails
    (project.deployed / "dev.json").unlink()
    status, out, _ = ran("--yes")
    assert (status, "dev-ingestion: failed: Resource postcondition failed" in out) == (6, True)
    assert "commit it" in out
    assert (project.deployed / "dev.json").is_file(), "it is written before the apply"
    project.content = content
    status, out, err = ran("--yes", "--accept-danger=the failed resource is replaced")
    assert (status, project.state()) == (0, "x"), out + err


@pytest.fixture
def grouped(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An environment with two groups."""

    def synthesise(*given: Any) -> dict[str, Path]:
        folders = project.synthesise(*given)
        for name in ("orders", "payments"):
            group = folders["dev-ingestion"].with_name(f"dev-ingestion-{name}")
            group.mkdir()
            place = {"backend": {"local": {"path": str(project.folder / f"{name}.tfstate")}}}
            content: Any = {"resource": {"terraform_data": {"b": {"input": "g"}}}, "terraform": place}
            if names := project.pipelines.get(name):
                made = [
                    Pipeline(topic=Topic(each, value="text"), table=Table(f"pay.{each}"), engine=Spark(group=name))
                    for each in names
                ]
                text = canonical(document(made)).decode()
                content["resource"]["aws_s3_object"] = {"p": {"key": "documents/p.json", "content": text}}
            (group / "cdk.tf.json").write_text(json.dumps(content))
            folders[group.name] = group
        return {"dev-foundation": group.with_name("dev-foundation"), **folders}

    monkeypatch.setattr(deploy, "synthesise", synthesise)
    return project


def test_the_stacks_of_groups_follow_ingestion(grouped: Project, ran: Ran) -> None:
    status, out, err = ran("--yes")
    assert (status, grouped.state()) == (0, "x"), out + err
    stacks = ["dev-ingestion", "dev-ingestion-orders", "dev-ingestion-payments"]
    assert [line.partition(":")[0] for line in out.splitlines()] == stacks


def test_one_group_can_be_deployed_alone_after_what_all_groups_share(
    grouped: Project, ran: Ran, tmp_path: Path
) -> None:
    status, out, err = ran("--yes", "--group=payments")
    assert (status, out, "dev-ingestion: it is not deployed" in err) == (2, "", True), err
    grouped.declare("x", output={"place": {"value": "s3://b/k"}})
    assert ran("--yes")[0] == 0
    (grouped.folder / "payments.tfstate").unlink()
    grouped.declare("y", output={"place": {"value": "s3://b/k"}})
    file = tmp_path / "outputs.json"
    status, out, err = ran("--yes", "--group=payments", f"--outputs={file}")
    assert (status, grouped.state()) == (0, "x"), out + err
    assert [line.partition(":")[0] for line in out.splitlines()] == ["dev-ingestion-payments"]
    assert json.loads(file.read_text()) == {"dev-ingestion": {"place": "s3://b/k"}}
    status, out, err = ran("--yes", "--group=nowhere")
    assert (status, out, "Groups: orders, payments" in err) == (2, "", True)


@pytest.mark.long
def test_a_pipeline_that_moves_is_not_deployed_with_one_of_its_groups_alone(
    grouped: Project, ran: Ran, tmp_path: Path
) -> None:
    grouped.declare("x", output={"place": {"value": "s3://b/k"}})
    assert ran("--yes")[0] == 0
    grouped.pipelines = {"orders": ("refunds",), "payments": ("payouts", "new")}
    deployed = tmp_path / "deployed.json"
    for job, said in (
        ("ingest-orders", "pipeline payouts: it moves from the job ingest-orders to ingest-payments"),
        ("ingest", "pipeline payouts: it moves from the job ingest to ingest-payments"),
    ):
        deployed.write_text(json.dumps({job: ["payouts"]}))
        status, out, err = ran("--yes", "--group=payments", f"--deployed-pipelines={deployed}")
        assert (status, out, said in err) == (2, "", True), err
        assert "leave out --group" in err
    deployed.write_text(json.dumps({"ingest-payments": ["refunds"]}))
    status, out, err = ran("--yes", "--group=payments", f"--deployed-pipelines={deployed}")
    assert (status, "refunds: it moves from the job ingest-payments to ingest-orders" in err) == (2, True), err
    grouped.pipelines = {"orders": ("refunds",)}
    deployed.write_text(json.dumps({"ingest": ["refunds", "gone"], "ingest-payments": ["retired"]}))
    status, out, err = ran("--yes", "--group=payments", f"--deployed-pipelines={deployed}")
    assert status == 0, err  # the move concerns other groups


def test_a_pattern_that_moves_is_not_deployed_with_one_of_its_groups_alone(tmp_path: Path) -> None:
    pattern = each_topic(r"shop\..*", table="shop.{topic}", value="text", engine=Spark(group="payments"))
    text = canonical(document([], [pattern])).decode()
    stack = {"resource": {"aws_s3_object": {"p": {"key": "documents/p.json", "content": text}}}}
    (tmp_path / "cdk.tf.json").write_text(json.dumps(stack))
    deployed = tmp_path / "deployed.json"
    for job, is_refused in (("ingest", True), ("ingest-payments", False)):
        deployed.write_text(json.dumps({job: [pattern.match, "shop_a"]}))
        with pytest.raises(InvalidDeclaration, match="moves from the job") if is_refused else nullcontext():
            deploy.refuse_moves("payments", [tmp_path], deployed)


@pytest.mark.long
def test_a_stack_is_planned_again_if_the_one_before_it_changes_its_outputs(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second stack reads an output of the first one, which does not exist before the first deployment."""
    state = str(project.folder / "confluent.tfstate")
    read = {"confluent": {"backend": "local", "config": {"path": state}}}
    later: list[str] = []
    planned = deploy.planned

    def synthesise(*given: Any) -> dict[str, Path]:
        project.content["data"] = {"terraform_remote_state": read}
        project.content["resource"]["terraform_data"]["a"]["input"] = (
            "${data.terraform_remote_state.confluent.outputs.x}"
        )
        folders = project.synthesise(*given)
        first = folders["dev-ingestion"].with_name("dev-confluent")
        first.mkdir()
        resource = {"terraform_data": {"b": {"input": given_value}}}
        content = {"resource": resource, "output": {"x": {"value": given_value}}}
        (first / "cdk.tf.json").write_text(
            json.dumps({**content, "terraform": {"backend": {"local": {"path": state}}}})
        )
        return {"dev-confluent": first, **folders}

    def counted(folders: Any, *rest: Any, **more: Any) -> Any:
        later.extend(folders)
        return planned(folders, *rest, **more)

    monkeypatch.setattr(deploy, "synthesise", synthesise)
    monkeypatch.setattr(deploy, "planned", counted)

    def run() -> list[str]:
        later.clear()
        assert deploy.main(["dev", "confluent", "ingestion", "--yes"], project.settings, NOW) == 0
        return [line.partition(", plan")[0] for line in capsys.readouterr().out.splitlines() if line.startswith("dev-")]

    given_value = "first"
    assert run() == ["dev-confluent: applied +1 ~0 -0 ±0", "dev-ingestion: applied +1 ~0 -0 ±0"]
    assert (later, project.state()) == (["dev-ingestion"], "first")
    given_value = "second"
    assert run() == ["dev-confluent: applied +0 ~1 -0 ±0", "dev-ingestion: applied +0 ~1 -0 ±0"]
    assert (later, project.state()) == (["dev-ingestion"], "second"), "the early plan was of the output before"
    assert run() == ["dev-confluent: nothing changes", "dev-ingestion: nothing changes"]
    assert later == [], "one plan of each is enough"


def test_wrong_input_is_told_apart(project: Project, ran: Ran) -> None:
    assert deploy.main(["nowhere", "ingestion"], project.settings, NOW) == 2
    status, _, err = ran("--yes", "--acceptances=missing.json")
    assert (status, "missing.json" in err) == (5, True)
    assert deploy.main(["dev", "owner", "--yes"], project.settings, NOW) == 5, "no owner is declared"
    assert deploy.main(["dev", "ingestion"], {"PATH": ""}, NOW) == 5
