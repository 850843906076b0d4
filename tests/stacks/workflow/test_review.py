"""`python -m stacks.workflow.review`: it plans in private, leaves nothing behind, tells no secret, and ends as it says."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policies.review.markdown.page import marker
from policies.review.plan.compared_plans import read_form
from policies.review.plan.plan_gaps import StackPlan
from stacks.spec.deployments import DEPLOYMENTS, Deployment
from stacks.workflow import review
from stacks.workflow.deployed import Deployed, Held, write
from stacks.workflow.terraform_command import NotPlanned
from stacks.workflow.terraform_plans import copied, plans, synthesise, synthesised
from tests.policies.review.cases import TOPIC, topic
from tests.policies.review.planning import change, plan, stays
from tests.policies.reviewing import TODAY
from tests.stacks.synthesised import resources, stacks_of

SECRET = "planted-in-a-plan-0123456789"
TERRAFORM = shutil.which("terraform")
needs_terraform = pytest.mark.skipif(TERRAFORM is None, reason="terraform is not installed")


# ── The command ─────────────────────────────────────────────────────────────────────────────────
@pytest.fixture
def synthesis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Synthesis that was done already; returns the private folders that are asked for, and checks that they are."""
    seen: list[Path] = []

    def done(deployment: Deployment, folder: Path, settings: Any, app: Any) -> dict[str, Path]:
        environment = deployment.name
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        seen.append(folder)
        for what, stack in stacks_of(environment).items():
            made = folder / f"{environment}-{what}"
            made.mkdir()
            (made / "cdk.tf.json").write_text(json.dumps(stack))
        return {f"{environment}-{what}": folder / f"{environment}-{what}" for what in stacks_of(environment)}

    monkeypatch.setattr(review, "synthesise", done)
    return seen


@pytest.fixture
def ended(
    monkeypatch: pytest.MonkeyPatch, synthesis: list[Path], capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs it with a plan of an ingestion; returns exit status, what it said, and what it complained of."""
    monkeypatch.setattr(review, "program", lambda settings: "terraform")

    def run(made: Any, *arguments: str, environment: str = "dev") -> tuple[int, str, str]:
        def plans(folders: dict[str, Path], *more: Any) -> list[StackPlan]:
            name = f"{environment}-ingestion"
            return [StackPlan(name=name, synthesised=synthesised(folders[name]), plan=json.loads(json.dumps(made)))]

        monkeypatch.setattr(review, "plans", plans)
        status = review.main([environment, *arguments], {}, TODAY)
        out, err = capsys.readouterr()
        assert not any(folder.exists() for folder in synthesis)
        return status, out, err

    return run


Ended = Callable[..., tuple[int, str, str]]


def deployed(environment: str = "dev") -> dict[str, Any]:
    """The example's document of pipelines, as it is deployed and as it stays."""
    [(name, values)] = [
        (name, values)
        for name, values in resources(stacks_of(environment)["ingestion"], "aws_s3_object").items()
        if '"pipelines"' in values["content"]
    ]
    return stays(f"aws_s3_object.{name}", values)


UNCHANGED = deployed()
LOST = change(TOPIC, "delete", topic())


def test_nothing_is_0_something_is_4_and_a_danger_is_1(ended: Ended) -> None:
    assert ended(plan(UNCHANGED))[0] == 0
    assert ended(plan(UNCHANGED, change(TOPIC, "update", topic(6), topic(12))))[0] == 4
    assert ended(plan(UNCHANGED, LOST))[0] == 1


def test_a_danger_that_is_accepted_is_4_and_the_reason_is_told(ended: Ended) -> None:
    status, out, _ = ended(plan(UNCHANGED, LOST), "--accept-danger", "the topic is empty")
    assert status == 4
    assert "the topic is empty" in out
    assert ended(plan(UNCHANGED, LOST), "--accept-danger", "  ")[0] == 1


def test_a_first_deployment_is_reviewed_without_terraform_and_cannot_be_accepted(
    synthesis: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert review.main(["dev", "--offline"], {"PATH": ""}, TODAY) == 4
    out = capsys.readouterr().out
    assert "> This review is made without credentials" in out
    assert all(f"`dev-{what}` +" in out for what in ("foundation", "confluent", "ingestion"))
    assert "| `flights` | `nyc.flights` | new |" in out
    assert all(part in out for part in ("### Who may do what", "### Cost, estimated", "| EMR Serverless | 0.00 |"))
    assert "frazil accept" not in out
    assert "Plan `" not in out
    assert not any(folder.exists() for folder in synthesis)


def test_a_planted_secret_is_told_nowhere(ended: Ended) -> None:
    key = change("confluent_api_key.k", "update", {"secret": "old"}, {"secret": SECRET}, secret={"secret": True})
    spread = change("aws_s3_bucket.b", "delete", {"bucket": SECRET, "tags": {SECRET: SECRET}})
    status, out, err = ended(plan(UNCHANGED, key, spread))
    assert status == 1
    assert SECRET not in out + err


@pytest.mark.parametrize("content", ["{}", '{"topics": 3}', '{"topics": ["a"]}', "[]", "{"])
def test_a_file_that_lists_no_topics_is_an_error(ended: Ended, tmp_path: Path, content: str) -> None:
    file = tmp_path / "topics.json"
    file.write_text('{"topics": [{"topic": "shop.a"}]}')
    assert ended(plan(UNCHANGED), "--topics", str(file)) == ended(plan(UNCHANGED)), "there is no pattern"
    file.write_text(content)
    status, _, err = ended(plan(UNCHANGED), "--topics", str(file))
    assert (status, err.startswith("error: ")) == (5, True)


def test_what_the_estimate_assumes_can_be_told(ended: Ended, tmp_path: Path) -> None:
    file = tmp_path / "assumptions.json"
    file.write_text(json.dumps({"months_stored": 24, "pipelines": {"flights": 500}}))
    out = ended(plan(UNCHANGED), "--assumptions", str(file))[1]
    assert "- months of rows that tables hold: they only grow: 24 (given)" in out
    file.write_text('{"months": 1}')
    status, _, err = ended(plan(UNCHANGED), "--assumptions", str(file))
    assert (status, "there is no such assumption" in err) == (5, True)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [(["nowhere"], 2), (["dev", "--surely"], 2), ([], 2), (["dev", "--assumptions", "/nowhere.json"], 5)],
)
def test_a_wrong_command_line_is_not_that_something_changes(arguments: list[str], wanted: int) -> None:
    try:
        status = review.main(arguments, {"PATH": os.environ["PATH"]}, TODAY)
    except SystemExit as end:
        status = int(str(end.code))
    assert status == wanted


def test_without_terraform_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert review.main(["dev"], {"PATH": ""}, TODAY) == 5
    assert "terraform is not installed" in capsys.readouterr().err


def test_stand_ins_without_tls_are_tolerated_in_the_local_environment(
    ended: Ended, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plan(deployed("local"))
    assert ended(made, environment="local")[0] == 0
    monkeypatch.setattr(review, "ON_STAND_INS", ())
    assert ended(made, environment="local")[0] == 1


@pytest.mark.long
def test_it_synthesises_and_reviews_as_a_module(root: Path, tmp_path: Path) -> None:
    recorded = tmp_path / "deployed" / "dev.json"
    write(recorded, Deployed(environment="dev"))
    before = recorded.read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "stacks.workflow.review", "dev", "--offline"],
        cwd=root,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "FRAZIL_PIPELINES": "stacks/example.py",
            "FRAZIL_DEPLOYED": str(tmp_path / "deployed"),
            "TMPDIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (4, "")
    assert "| `flights` | `nyc.flights` | new |" in done.stdout
    assert list(tmp_path.glob("frazil-review-*")) == []
    assert recorded.read_bytes() == before, "a review changes nothing"


@pytest.mark.long
def test_a_declaration_that_disappears_is_told_and_the_file_of_deployed_objects_stays(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    recorded, mine = tmp_path / "deployed" / "dev.json", tmp_path / "pipelines.py"
    topic = Held(type="confluent_kafka_topic", name="flights", stack="dev-confluent", address="x")
    write(recorded, Deployed(environment="dev", objects=(topic,)))
    before = recorded.read_bytes()
    mine.write_text("from stacks.pipelines import pipelines\n")
    (tmp_path / "review").mkdir()
    told = {"FRAZIL_PIPELINES": str(mine), "FRAZIL_RELEASE": "none", "FRAZIL_DEPLOYED": str(recorded.parent)}
    with pytest.raises(NotPlanned, match="^deployed dev: confluent_kafka_topic flights: it is no longer declared"):
        synthesise(DEPLOYMENTS["dev"], tmp_path / "review", {**os.environ, **told})
    assert recorded.read_bytes() == before


@pytest.mark.long
def test_a_review_that_is_ended_leaves_no_plan_behind(root: Path, tmp_path: Path) -> None:
    """Terraform is a stand-in that says where it is, and waits."""
    program, said = tmp_path / "bin" / "terraform", tmp_path / "said"
    program.parent.mkdir()
    program.write_text(f'#!/usr/bin/env bash\ntouch plan\npwd > "{said}"\nexec cat "{tmp_path}/for-ever"\n')
    program.chmod(0o700)
    os.mkfifo(said)
    os.mkfifo(tmp_path / "for-ever")
    # Synthesis takes seconds and is not what is asked here: a folder of a stack is enough.
    script = (
        "import runpy, sys\nfrom pathlib import Path\nfrom stacks.workflow import terraform_plans\n"
        "def done(deployment, folder, settings, app):\n"
        "    made = folder / 'cdktf.out' / 'stacks' / 'dev-x'\n    made.mkdir(parents=True)\n"
        "    (made / 'cdk.tf.json').write_text('{}')\n    return {'dev-x': made}\n"
        "terraform_plans.synthesise = done\nsys.argv = ['review', 'dev']\n"
        "runpy.run_module('stacks.workflow.review', run_name='__main__')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=root,
        env={
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "TMPDIR": str(tmp_path),
            "PYTHONPATH": f"{root}:{root / 'jobs'}",
        },
    )
    try:
        folder = Path(said.read_text().strip())
        assert (folder / "plan").exists()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
        assert not folder.exists()
        assert list(tmp_path.glob("frazil-review-*")) == []
    finally:
        process.kill()
        process.wait()


# ── Plans by Terraform itself, of resources that need no provider ───────────────────────────────
def settings() -> dict[str, str]:
    return {**os.environ, "TF_LOG": "trace", "TF_LOG_PATH": "terraform.log"}


def planned(folders: dict[str, Path]) -> dict[str, StackPlan]:
    return {each.name: each for each in plans(folders, settings(), TERRAFORM or "")}


def data(**more: Any) -> dict[str, Any]:
    return {
        "resource": {"terraform_data": {"a": {"input": "x", **more}}},
        "output": {"o": {"value": "${terraform_data.a.id}"}},
    }


def apply(folder: Path) -> None:
    subprocess.run(
        [TERRAFORM or "", "apply", "-auto-approve", "-input=false"], cwd=folder, check=True, capture_output=True
    )


@needs_terraform
def test_terraforms_own_plans_are_read_and_nothing_is_written(stack: Callable[..., dict[str, Path]]) -> None:
    folders = stack(one=data())
    first = planned(folders)["one"]
    assert first.plan is not None
    assert [each["change"]["actions"] for each in first.plan["resource_changes"]] == [["create"]]
    assert not list(folders["one"].glob("*.tfstate*"))
    assert not list(folders["one"].glob("*.log"))
    apply(folders["one"])
    second = planned(folders)["one"]
    assert second.plan is not None
    assert [each["change"]["actions"] for each in second.plan["resource_changes"]] == [["no-op"]]


@needs_terraform
def test_a_provider_that_cannot_be_had_is_an_error_in_terraforms_words(stack: Callable[..., dict[str, Path]]) -> None:
    wanted = {"terraform": {"required_providers": {"x": {"source": "127.0.0.1:9/none/such"}}}, "provider": {"x": {}}}
    with pytest.raises(NotPlanned, match="one: "):
        planned(stack(one=wanted))


def test_a_review_names_its_plan_and_writes_the_normal_form(ended: Ended, tmp_path: Path) -> None:
    file = tmp_path / "form.json"
    made = plan(UNCHANGED, change(TOPIC, "update", topic(6), topic(12)))
    _, out, _ = ended(made, "--form", str(file))
    form = read_form(file.read_text())
    assert f"Plan `{form.digest[:16]}`." in out
    assert "`dev-ingestion` +0 ~1 -0 ±0" in out


def test_what_code_owners_accepted_counts_for_the_same_plan_only(ended: Ended, tmp_path: Path) -> None:
    form, file = tmp_path / "form.json", tmp_path / "acceptances.json"
    ended(plan(UNCHANGED, LOST), "--form", str(form))
    digest = read_form(form.read_text()).digest
    line = {"digest": digest, "codes": ["data_lost"], "reason": "it is empty", "by": "ann", "url": ""}
    file.write_text(json.dumps({"environment": "dev", "accepted": [line]}))
    assert ended(plan(UNCHANGED, LOST), "--acceptances", str(file))[0] == 4
    assert ended(plan(UNCHANGED, change(TOPIC, "delete", topic(3))), "--acceptances", str(file))[0] == 4, (
        "of one object"
    )
    other = {**topic(), "id": "lkc-2/flights"}
    assert ended(plan(UNCHANGED, change(TOPIC, "delete", other)), "--acceptances", str(file))[0] == 1
    file.write_text(json.dumps({"environment": "prod", "accepted": [line]}))
    assert ended(plan(UNCHANGED, LOST), "--acceptances", str(file))[0] == 5


# ── Stacks of another checkout ──────────────────────────────────────────────────────────────────
def foreign(folder: Path, **changed: Any) -> Path:
    """The stacks of dev as another checkout could have written them."""
    for what, content in stacks_of("dev").items():
        (folder / f"dev-{what}").mkdir(parents=True)
        (folder / f"dev-{what}" / "cdk.tf.json").write_text(json.dumps({**content, **changed.get(what, {})}))
    return folder


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> None:
    def done(deployment: Deployment, folder: Path, settings: Any, app: Any) -> dict[str, Path]:
        return {each.name: each for each in foreign(folder / "cdktf.out" / "stacks").iterdir()}

    monkeypatch.setattr(review, "synthesise", done)


def test_the_stacks_of_another_checkout_are_planned(ended: Ended, tmp_path: Path) -> None:
    folder = foreign(tmp_path / "a")
    assert ended(plan(UNCHANGED), "--synthesised", str(folder))[0] == 0
    shutil.rmtree(folder / "dev-foundation")
    status, _, err = ended(plan(UNCHANGED), "--synthesised", str(folder))
    assert (status, "dev-foundation" in err) == (5, True)


def test_groups_of_another_checkout_are_planned_and_nothing_but_stacks_is_copied(tmp_path: Path) -> None:
    folder = foreign(tmp_path / "a")
    shutil.copytree(folder / "dev-ingestion", folder / "dev-ingestion-payments")
    (folder / "dev-ingestion" / "more.tf").write_text("")
    (tmp_path / "private").mkdir()
    found = copied(DEPLOYMENTS["dev"], folder, tmp_path / "private")
    assert list(found) == ["dev-foundation", "dev-confluent", "dev-ingestion", "dev-ingestion-payments"]
    assert {file.name for each in found.values() for file in each.iterdir()} == {"cdk.tf.json"}


def test_stacks_that_are_those_of_the_base_branch_are_not_planned(
    base: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Documentation changes in a pull request need no plan of three environments."""
    file = tmp_path / "form.json"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "terraform").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin" / "terraform").chmod(0o755)
    settings = {"PATH": str(tmp_path / "bin")}

    def ran(folder: Path) -> tuple[int, str]:
        arguments = ["dev", "--synthesised", str(folder), "--only-changed", "--form", str(file)]
        return review.main(arguments, settings, TODAY), capsys.readouterr().out

    noted = {"ingestion": {"//": {"metadata": {"version": "another"}}}}
    status, out = ran(foreign(tmp_path / "same", **noted))
    assert (status, file.exists()) == (0, False)
    assert out.startswith(f"{marker('dev')}\n")
    assert "nothing is declared differently" in out
    assert ran(foreign(tmp_path / "other", ingestion={"output": {"x": {"value": "y"}}}))[0] == 5, "Terraform is asked"
    assert review.main(["dev", "--only-changed"], settings, TODAY) == 5
