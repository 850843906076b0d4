"""The workflows of pull requests and merges keep to their rules: pinned actions, least rights, no credentials for code of a fork, no plan
leaves the runner."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from frazil.project.new_project import Cluster, NewProject
from policies.review.markdown import marker

FOLDER = Path(".github/workflows")
NAMES = ("synthesise", "review", "deploy")
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
CREDENTIALS = re.compile(r"id-token|FRAZIL_[A-Z]+_ROLE|secrets[.\[]|vars\.|GH_TOKEN|GITHUB_TOKEN")
TRIGGERS = {"synthesise": {"pull_request"}, "review": {"workflow_run", "issue_comment"}, "deploy": {"push"}}
RIGHTS = {
    "synthesise": {("contents", "read")},
    "review": {
        ("actions", "read"),
        ("contents", "read"),
        ("id-token", "write"),
        ("pull-requests", "write"),
        ("statuses", "write"),
    },
    "deploy": {("actions", "read"), ("contents", "read"), ("id-token", "write"), ("pull-requests", "write")},
}
UPLOADED = {"cdktf.out/stacks/*/cdk.tf.json", "${{ runner.temp }}/reviewed.json"}


@pytest.fixture(scope="module")
def texts(root: Path) -> dict[str, str]:
    return {name: (root / FOLDER / f"{name}.yml").read_text() for name in NAMES}


@pytest.fixture(scope="module")
def steps(texts: dict[str, str]) -> list[dict[str, Any]]:
    """The steps of the review."""
    [job] = yaml.safe_load(texts["review"])["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


def problems(name: str, text: str) -> list[str]:
    """What a workflow does that it may not."""
    made = yaml.safe_load(text)
    found = []
    if set(made.get("on", made.get(True))) != TRIGGERS[name]:  # YAML 1.1 reads `on` as true
        found.append("another trigger")
    if made.get("permissions") != {}:
        found.append("rights by default")
    if "secrets." in text or "secrets[" in text:
        found.append("secrets of GitHub")
    if name == "synthesise" and CREDENTIALS.search(re.sub(r"#.*", "", text)):
        found.append("credentials beside code of a fork")
    if name != "synthesise" and re.search(r"ref: |head\.ref|refs/pull|git (fetch|checkout)|stacks\.app", text):
        found.append("code of a pull request beside credentials")
    for job in made["jobs"].values():
        if not set((job.get("permissions") or {"all": "write"}).items()) <= RIGHTS[name]:
            found.append("more rights than it needs")
        if name != "synthesise" and job.get("environment") != f"{name}-${{{{ matrix.environment }}}}":
            found.append("another environment")
        for step in job["steps"]:
            uses, run = step.get("uses", ""), step.get("run", "")
            if uses and not PINNED.fullmatch(uses):
                found.append(f"not pinned: {uses}")
            if ("upload" in uses and step["with"]["path"] not in UPLOADED) or "cache" in uses:
                found.append(f"something leaves the runner: {uses}")
            if "${{" in run:
                found.append("an expression inside a script")
            if re.search(r"set -x|terraform show|plan\.json|aws s3 (cp|sync|mv) \S*(plan|\$RUNNER_TEMP)\S* s3:", run):
                found.append("a plan is shown or copied")
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_workflow_keeps_to_all_rules(name: str, texts: dict[str, str]) -> None:
    assert problems(name, texts[name]) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_workflow_of_a_project_keeps_to_the_same_rules(name: str) -> None:
    files = NewProject(cluster=Cluster.CONFLUENT, environment="dev", bootstrap="k:9092", has_aws=True).files("0.1.0")
    assert problems(name, files[f".github/workflows/{name}.yml"]) == []


CHECKOUT = "@3d3c42e5aac5ba805825da76410c181273ba90b1"


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("synthesise", "  pull_request:\n", "  pull_request_target:\n", "another trigger"),
        ("review", "  issue_comment:\n", "  pull_request_target:\n", "another trigger"),
        ("synthesise", "permissions: {}", "permissions: write-all", "rights by default"),
        ("synthesise", "contents: read", "contents: write", "more rights than it needs"),
        ("synthesise", "      contents: read\n", "      contents: read\n      id-token: write\n", "credentials beside code of a fork"),
        ("synthesise", "FRAZIL_RELEASE: none", "GH_TOKEN: ${{ github.token }}", "credentials beside code of a fork"),
        ("review", "          persist-credentials: false", "          ref: ${{ github.event.workflow_run.head_sha }}", "code of a pull request beside credentials"),
        ("review", "umask 077", "git fetch origin refs/pull/1/head", "code of a pull request beside credentials"),
        ("review", "umask 077", "python -m stacks.app", "code of a pull request beside credentials"),
        ("review", "environment: review-", "environment: deploy-", "another environment"),
        ("deploy", "environment: deploy-", "environment: review-", "another environment"),
        ("review", CHECKOUT, "@v7", "not pinned: actions/checkout@v7"),
        ("review", "github.token", "secrets.TOKEN", "secrets of GitHub"),
        ("review", '"$ENVIRONMENT" --synth', '"${{ github.head_ref }}" --synth', "an expression inside a script"),
        ("review", "runner.temp }}/reviewed.json", "runner.temp }}", "something leaves the runner: actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02"),
        ("deploy", "umask 077", "terraform show -json plan", "a plan is shown or copied"),
    ],
)  # fmt: skip
def test_each_rule_can_be_broken(name: str, old: str, new: str, problem: str, texts: dict[str, str]) -> None:
    assert old in texts[name]
    assert problem in problems(name, texts[name].replace(old, new))


@pytest.mark.parametrize("name", NAMES)
def test_every_pinned_action_says_its_version(name: str, texts: dict[str, str]) -> None:
    for line in texts[name].splitlines():
        if re.search(r"\buses:", line):
            assert re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_the_checkout_can_push_and_terraform_prints_nothing(name: str, texts: dict[str, str]) -> None:
    [job] = yaml.safe_load(texts[name])["jobs"].values()
    by_name = {step.get("uses", "").partition("@")[0]: step.get("with", {}) for step in job["steps"]}
    assert by_name["actions/checkout"] == {"persist-credentials": False}
    if name != "synthesise":
        terraform = by_name["hashicorp/setup-terraform"]
        assert (terraform["terraform_wrapper"], terraform["terraform_version"]) == (False, "1.11.4")


def test_review_and_deployment_synthesise_what_the_first_stage_does(texts: dict[str, str]) -> None:
    wanted = {
        line.split("#")[0].strip()
        for line in texts["synthesise"].splitlines()
        if re.search("FRAZIL_(PIPELINES|RELEASE):", line)
    }
    for name in ("review", "deploy"):
        assert wanted <= {line.strip() for line in texts[name].splitlines()}


@pytest.mark.long
def test_actionlint_has_nothing_against_any_workflow(root: Path, tmp_path: Path) -> None:
    """It checks expressions, contexts and types, and the scripts if shellcheck is installed."""
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    command = ["go", "run", "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12", "-no-color"]
    settings = {**os.environ, "GOFLAGS": "-mod=mod"}
    if subprocess.run([*command, "-version"], env=settings, capture_output=True, check=False).returncode:
        pytest.skip("actionlint cannot be had here, no Go module proxy answers")
    files = NewProject(cluster=Cluster.CONFLUENT, environment="dev", bootstrap="k:9092", has_aws=True).files("0.1.0")
    for name, text in files.items():
        if name.startswith(".github/workflows/"):
            (tmp_path / Path(name).name).write_text(text)
    found = [*(root / FOLDER).glob("*.yml"), *tmp_path.glob("*.yml")]
    assert len(found) >= 8
    ended = subprocess.run([*command, *found], cwd=root, env=settings, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "")


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
            "SHA": "f" * 40,
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
    assert calls[-2].startswith("api --silent --method POST repos/o/r/issues/7/comments ")
    assert f"repos/o/r/statuses/{'f' * 40} -f state=success -f context=frazil/review-dev" in calls[-1]


def test_the_next_review_takes_its_place(runner: Any) -> None:
    status, calls, body = runner(PAGE, "0", comments="41\n42\n")
    assert (status, body) == (0, PAGE)
    assert calls[-2].startswith("api --silent --method PATCH repos/o/r/issues/comments/41 ")


@pytest.mark.parametrize(("told", "wanted"), [("0", 0), ("4", 0), ("1", 1), ("2", 1), ("5", 1), ("", 1)])
def test_a_refused_review_fails_after_it_was_posted(runner: Any, told: str, wanted: int) -> None:
    status, calls, _ = runner(PAGE, told)
    assert status == wanted
    assert len(calls) == 3
    assert f"-f state={'failure' if told == '1' else 'error' if wanted else 'success'} " in calls[-1]


@pytest.mark.parametrize("page", ["", "Traceback\n"])
def test_a_review_that_could_not_be_made_says_so_and_fails(runner: Any, page: str) -> None:
    status, _, body = runner(page, "4")
    assert status == 1
    assert "it could not be made" in body
    assert body.startswith(marker("dev"))


def test_comments_are_looked_for_by_what_reviews_begin_with(steps: list[dict[str, Any]]) -> None:
    [step] = [step for step in steps if step.get("name") == "Comment"]
    assert f'marker="{marker("$ENVIRONMENT").replace("ENVIRONMENT", "$ENVIRONMENT")}"' in step["run"]
