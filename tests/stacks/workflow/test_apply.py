"""`python -m stacks.workflow.apply`, with Terraform's own plans of resources that need no provider: the reviewed plan, or nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from policies.review.plan.compared_plans import normal_form
from stacks.spec.deployments import Deployment
from stacks.workflow import apply
from stacks.workflow.deployed import Deployed, write
from stacks.workflow.saved_plans import planned

TERRAFORM = shutil.which("terraform") or ""
pytestmark = pytest.mark.skipif(not TERRAFORM, reason="terraform is not installed")
NOW = datetime(2026, 11, 25, tzinfo=UTC)


class Project:
    """An environment of one stack, whose state stays beside it; synthesis writes `content`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.deployed = folder, folder / "deployed"
        self.content: dict[str, Any] = {}
        self.declare("x")
        write(self.deployed / "dev.json", Deployed(environment="dev"))
        self.private: list[Path] = []
        self.pipelines: dict[str, tuple[str, ...]] = {}
        """Declared pipelines by group, for a test that deploys none of them."""

    @property
    def settings(self) -> dict[str, str]:
        return {**os.environ, "FRAZIL_DEPLOYED": str(self.deployed)}

    def declare(self, value: str, **more: Any) -> None:
        self.content = {
            "resource": {"terraform_data": {"a": {"input": value}}},
            "terraform": {"backend": {"local": {"path": str(self.folder / "one.tfstate")}}},
            **more,
        }

    def synthesise(self, deployment: Deployment, folder: Path, *_: Any) -> dict[str, Path]:
        self.private.append(folder)
        stack = folder / "cdktf.out" / "stacks" / "dev-ingestion"
        stack.mkdir(parents=True)
        (stack / "cdk.tf.json").write_text(json.dumps(self.content))
        (folder / "deployed").mkdir()
        write(folder / "deployed" / "dev.json", Deployed(environment="dev"))
        return {"dev-ingestion": stack}

    def reviewed(self) -> Path:
        """The normal form of what a review of this project sees."""
        folder = self.folder / f"review-{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        made = planned(self.synthesise(None, folder), self.settings, TERRAFORM)  # type: ignore[arg-type]
        form = normal_form("dev", {each.name: each.plan for each in made.stacks})
        file = folder / "form.json"
        file.write_text(form.text)
        self.digest = form.digest
        return file

    def accept(self, *codes: str, found: str = "") -> Path:
        line = {"digest": found or self.digest, "codes": codes, "reason": "r", "by": "ann", "url": ""}
        file = self.folder / "acceptances.json"
        file.write_text(json.dumps({"environment": "dev", "accepted": [line]}))
        return file

    def state(self) -> Any:
        file = self.folder / "one.tfstate"
        if not file.exists():
            return None
        [resource] = [each for each in json.loads(file.read_text())["resources"] if each["mode"] == "managed"]
        return resource["instances"][0]["attributes"]["input"]["value"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.setattr(apply, "synthesise", made.synthesise)
    return made


@pytest.fixture
def ran(project: Project, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(**files: Path) -> tuple[int, str, str]:
        arguments = [f"--{name}={file}" for name, file in files.items()]
        status = apply.main(["dev", *arguments], project.settings, NOW)
        assert not project.private[-1].exists(), "the plan file is stored nowhere"
        out, err = capsys.readouterr()
        return status, out, err

    return run


Ran = Callable[..., tuple[int, str, str]]


def test_the_reviewed_plan_is_applied(project: Project, ran: Ran) -> None:
    status, out, err = ran(reviewed=project.reviewed())
    assert (status, project.state()) == (0, "x"), out + err
    assert "- `dev-ingestion`: applied" in out
    status, out, _ = ran()
    assert (status, "Nothing changes." in out) == (0, True), "nothing needs no review"


def test_another_plan_is_posted_and_not_applied(project: Project, ran: Ran) -> None:
    reviewed = project.reviewed()
    project.declare("another value")
    status, out, _ = ran(reviewed=reviewed)
    assert (status, project.state()) == (1, None)
    assert "- dev-ingestion: terraform_data.a\n" in out
    assert f"`{project.digest[:16]}` was reviewed" in out
    [asked] = re.findall(r"`frazil accept ([0-9a-f]+) plan_differs: the reason`", out)
    assert len(asked) == 64, "an acceptance names the complete digest"


@pytest.mark.long
def test_a_state_that_changed_after_the_review_is_another_plan(project: Project, ran: Ran) -> None:
    reviewed = project.reviewed()
    assert ran(reviewed=reviewed)[0] == 0
    project.declare("y")
    changed = project.reviewed()
    assert ran(reviewed=changed)[0] == 0
    project.declare("z")
    assert ran(reviewed=changed)[0] == 1
    assert project.state() == "y"


@pytest.mark.long
def test_without_a_review_nothing_is_applied_unless_a_code_owner_accepts_this_plan(project: Project, ran: Ran) -> None:
    status, out, _ = ran()
    assert (status, "No review of this plan is known" in out) == (1, True)
    project.reviewed()
    assert ran(acceptances=project.accept("plan_differs", found="0" * 64))[0] == 1
    assert ran(acceptances=project.accept("plan_differs"))[0] == 0
    assert project.state() == "x"


def test_a_danger_that_is_not_accepted_refuses_the_reviewed_plan_too(project: Project, ran: Ran) -> None:
    """Whoever forges a review still needs the acceptance of a code owner: the deployment reviews again."""
    assert ran(reviewed=project.reviewed())[0] == 0
    project.declare("y")
    refusing = {"precondition": [{"condition": '${terraform.workspace == "x"}', "error_message": "no"}]}
    other = {"input": "z", "triggers_replace": "${terraform_data.a.id}", "lifecycle": refusing}
    project.content["resource"]["terraform_data"]["b"] = other
    reviewed = project.reviewed()
    status, out, err = ran(reviewed=reviewed, acceptances=project.accept("data_lost"))
    assert (status, "`not_reviewed`" in out) == (1, True), out + err
    status, out, _ = ran(reviewed=reviewed, acceptances=project.accept("not_reviewed"))
    assert status == 4, "an accepted plan that is not complete is still not applied"
    assert "left: Terraform refuses this plan: Resource precondition failed" in out
    assert project.state() == "x"


@pytest.mark.long
def test_outputs_that_are_no_secrets_are_written_also_if_nothing_changes(
    project: Project, ran: Ran, tmp_path: Path
) -> None:
    secret = {"value": "${sensitive(terraform_data.a.input)}", "sensitive": True}
    project.content["output"] = {"document": {"value": "${terraform_data.a.input}"}, "key": secret}
    written = tmp_path / "outputs.json"
    for reviewed in ({"reviewed": project.reviewed()}, {}):
        status, out, err = ran(**reviewed, outputs=written)
        assert status == 0, out + err
        assert json.loads(written.read_text()) == {"dev-ingestion": {"document": "x"}}
        written.unlink()


def test_a_commit_without_the_file_of_deployed_objects_is_not_applied(project: Project, ran: Ran) -> None:
    reviewed = project.reviewed()
    (project.deployed / "dev.json").unlink()
    status, _, err = ran(reviewed=reviewed)
    assert (status, project.state()) == (5, None)
    assert "the commit lacks what synthesis writes" in err


def test_a_failure_of_terraform_is_6(project: Project, ran: Ran) -> None:
    failing = {"postcondition": [{"condition": "${self.output == self.input && false}", "error_message": "no"}]}
    project.content["resource"]["terraform_data"]["a"]["lifecycle"] = failing
    status, out, _ = ran(reviewed=project.reviewed())
    assert (status, "**failed**: Resource postcondition failed" in out) == (6, True)


def test_wrong_input_is_told_apart(project: Project, ran: Ran, tmp_path: Path) -> None:
    assert apply.main(["nowhere"], project.settings, NOW) == 2
    (tmp_path / "form").write_text("{}")
    assert apply.main(["dev", f"--reviewed={tmp_path / 'form'}"], project.settings, NOW) == 5
    assert apply.main(["dev"], {"PATH": ""}, NOW) == 5
