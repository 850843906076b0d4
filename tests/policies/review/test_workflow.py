"""The workflow of pull requests keeps to its rules: pinned actions, least rights, no secrets for forks, no plan leaves the runner."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from policies.review.markdown import marker

FILE = Path(".github/workflows/review.yml")
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")


@pytest.fixture(scope="module")
def text(root: Path) -> str:
    return (root / FILE).read_text()


@pytest.fixture(scope="module")
def workflow(text: str) -> dict[str, Any]:
    made: dict[str, Any] = yaml.safe_load(text)
    return made


@pytest.fixture(scope="module")
def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    [job] = workflow["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


def problems(text: str) -> list[str]:
    """What a workflow does that it may not."""
    made = yaml.safe_load(text)
    found = []
    triggers = made.get("on", made.get(True))  # YAML 1.1 reads `on` as true
    if set(triggers if isinstance(triggers, dict | list) else [triggers]) != {"pull_request"}:
        found.append("another trigger than pull_request")
    if made.get("permissions") != {}:
        found.append("rights by default")
    if "secrets." in text or "secrets[" in text:
        found.append("secrets of GitHub")
    for job in made["jobs"].values():
        if job.get("if") != "github.event.pull_request.head.repo.full_name == github.repository":
            found.append("forks")
        if not set((job.get("permissions") or {"all": "write"}).items()) <= {
            ("contents", "read"),
            ("id-token", "write"),
            ("pull-requests", "write"),
        }:
            found.append("more rights than it needs")
        for step in job["steps"]:
            uses, run = step.get("uses", ""), step.get("run", "")
            if uses and not PINNED.fullmatch(uses):
                found.append(f"not pinned: {uses}")
            if "upload" in uses or "cache" in uses:
                found.append(f"something leaves the runner: {uses}")
            if "${{" in run:
                found.append("an expression inside a script")
            if re.search(r"set -x|terraform show|plan\.json|aws s3 (cp|sync|mv) \S*(plan|\$RUNNER_TEMP)\S* s3:", run):
                found.append("a plan is shown or copied")
    return found


def test_the_workflow_keeps_to_all_rules(text: str) -> None:
    assert problems(text) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("  pull_request:\n", "  pull_request_target:\n", "another trigger than pull_request"),
        ("permissions: {}", "permissions: write-all", "rights by default"),
        ("contents: read", "contents: write", "more rights than it needs"),
        ("    if: github.event.pull_request.head.repo.full_name == github.repository\n", "", "forks"),
        ("@3d3c42e5aac5ba805825da76410c181273ba90b1", "@v7", "not pinned: actions/checkout@v7"),
        ("github.token", "secrets.TOKEN", "secrets of GitHub"),
        ('"$ENVIRONMENT" >"$RUNNER', '"${{ github.head_ref }}" >"$RUNNER', "an expression inside a script"),
        ("actions/setup-python@", "actions/upload-artifact@", "something leaves the runner: actions/upload-artifact@ece7cb06caefa5fff74198d8649806c4678c61a1"),
        ("umask 077", "terraform show -json plan", "a plan is shown or copied"),
    ],
)  # fmt: skip
def test_each_rule_can_be_broken(text: str, old: str, new: str, problem: str) -> None:
    assert old in text
    assert problem in problems(text.replace(old, new))


def test_every_pinned_action_says_its_version(text: str) -> None:
    for line in text.splitlines():
        if "uses:" in line:
            assert re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def test_nothing_of_the_checkout_can_push_and_terraform_prints_nothing(steps: list[dict[str, Any]]) -> None:
    by_name = {step.get("uses", "").partition("@")[0]: step.get("with", {}) for step in steps}
    assert by_name["actions/checkout"] == {"persist-credentials": False}
    assert by_name["hashicorp/setup-terraform"]["terraform_wrapper"] is False


def test_terraform_is_the_version_that_everything_was_tried_with(steps: list[dict[str, Any]]) -> None:
    [terraform] = [step for step in steps if "setup-terraform" in step.get("uses", "")]
    assert terraform["with"]["terraform_version"] == "1.11.4"


# ── The script that comments ────────────────────────────────────────────────────────────────────
GH = """#!/usr/bin/env bash
echo "$@" >> calls
case "$*" in *--paginate*) cat comments 2>/dev/null || true ;; esac
for each in "$@"; do case "$each" in body=@*) cp "${each#body=@}" body ;; esac; done
"""


@pytest.fixture
def runner(tmp_path: Path, steps: list[dict[str, Any]]) -> Any:
    """Runs the step with a stand-in for GitHub's command; returns exit status, calls and the comment's text."""
    (tmp_path / "bin").mkdir()
    gh = tmp_path / "bin" / "gh"
    gh.write_text(GH)
    gh.chmod(gh.stat().st_mode | stat.S_IXUSR)
    [step] = [step for step in steps if step.get("name") == "Comment"]

    def run(review: str, status: str, comments: str = "") -> tuple[int, list[str], str]:
        (tmp_path / "review.md").write_text(review)
        (tmp_path / "comments").write_text(comments)
        told = {
            "ENVIRONMENT": "dev",
            "REPOSITORY": "o/r",
            "NUMBER": "7",
            "STATUS": status,
            "RUN": "https://run",
            "RUNNER_TEMP": str(tmp_path),
        }
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", step["run"]],
            cwd=tmp_path,
            env={**told, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        return ended.returncode, (tmp_path / "calls").read_text().splitlines(), (tmp_path / "body").read_text()

    return run


PAGE = f"{marker('dev')}\n## Review\n"


def test_the_first_review_is_a_new_comment(runner: Any) -> None:
    status, calls, body = runner(PAGE, "4")
    assert (status, body) == (0, PAGE)
    assert calls[-1].startswith("api --silent --method POST repos/o/r/issues/7/comments ")


def test_the_next_review_takes_its_place(runner: Any) -> None:
    status, calls, body = runner(PAGE, "0", comments="41\n42\n")
    assert (status, body) == (0, PAGE)
    assert calls[-1].startswith("api --silent --method PATCH repos/o/r/issues/comments/41 ")


@pytest.mark.parametrize(("told", "wanted"), [("0", 0), ("4", 0), ("1", 1), ("2", 1), ("5", 1), ("", 1)])
def test_a_refused_review_fails_after_it_was_posted(runner: Any, told: str, wanted: int) -> None:
    status, calls, _ = runner(PAGE, told)
    assert status == wanted
    assert len(calls) == 2


@pytest.mark.parametrize("page", ["", "Traceback\n"])
def test_a_review_that_could_not_be_made_says_so_and_fails(runner: Any, page: str) -> None:
    status, _, body = runner(page, "4")
    assert status == 1
    assert "it could not be made" in body
    assert body.startswith(marker("dev"))


def test_comments_are_looked_for_by_what_reviews_begin_with(steps: list[dict[str, Any]]) -> None:
    [step] = [step for step in steps if step.get("name") == "Comment"]
    assert f'marker="{marker("$ENVIRONMENT").replace("ENVIRONMENT", "$ENVIRONMENT")}"' in step["run"]
