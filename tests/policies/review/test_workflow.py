"""The workflows of pull requests and merges keep to their rules: pinned actions, least rights, no credentials for code of a fork, no plan
leaves the runner."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from frazil.project.new_project import Cluster, NewProject
from policies.review.markdown.page import marker

FOLDER = Path(".github/workflows")
NAMES = ("synthesise", "review", "deploy", "deploy-environment")
WITH_CREDENTIALS = {
    "review": "review-${{ matrix.environment }}",
    "deploy-environment": "deploy-${{ inputs.environment }}",
}
"""The workflows that AWS trusts, and the GitHub environment of their job."""
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
CREDENTIALS = re.compile(r"id-token|FRAZIL_[A-Z]+_ROLE|secrets[.\[]|vars\.|GH_TOKEN|GITHUB_TOKEN")
TRIGGERS = {
    "synthesise": {"pull_request"},
    "review": {"workflow_run", "issue_comment"},
    "deploy": {"push"},
    "deploy-environment": {"workflow_call"},
}
RIGHTS = {
    "synthesise": {("contents", "read")},
    "review": {
        ("actions", "read"),
        ("contents", "read"),
        ("id-token", "write"),
        ("pull-requests", "write"),
        ("statuses", "write"),
    },
    "deploy": {("contents", "read")},
    "deploy-environment": {
        ("actions", "read"),
        ("contents", "read"),
        ("id-token", "write"),
        ("pull-requests", "write"),
    },
}
CALLED = "./.github/workflows/deploy-environment.yml"
UPLOADED = {"cdktf.out/stacks/*/cdk.tf.json", "${{ runner.temp }}/reviewed.json"}


@pytest.fixture(scope="module")
def texts(root: Path) -> dict[str, str]:
    return {name: (root / FOLDER / f"{name}.yml").read_text() for name in NAMES}


def of_a_project() -> dict[str, str]:
    """The files of a new project."""
    return NewProject(cluster=Cluster.CONFLUENT, environment="dev", bootstrap="k:9092", has_aws=True).files("0.1.0")


def test_a_deployment_takes_no_review_of_a_forks_workflow(root: Path, texts: dict[str, str]) -> None:
    """The branch of a fork may be called `main`, and its pull request's workflow uploads what it wants."""
    template = (root / "jobs/frazil/project/templates/deploy-environment.yml.template").read_text()
    for text in (texts["deploy-environment"], template):
        assert ".workflow_run.head_repository_id == .workflow_run.repository_id" in text


def test_a_review_with_credentials_is_of_branches_of_the_repository_only(root: Path, texts: dict[str, str]) -> None:
    template = (root / "jobs/frazil/project/templates/review.yml.template").read_text()
    for text in (texts["review"], template):
        assert "github.event.workflow_run.head_repository.full_name == github.repository" in text
        assert '.state == "open" and .head.repo.full_name == env.REPOSITORY' in text, "the pull request of a comment"
        assert "select(.head_repository.full_name == env.REPOSITORY)" in text, "the run that synthesised it"


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
    # The jobs of `deploy` that call another workflow give it their rights, and run nothing.
    own = yaml.safe_dump([job for job in made["jobs"].values() if "steps" in job]) if name == "deploy" else text
    if name not in WITH_CREDENTIALS and CREDENTIALS.search(re.sub(r"#.*", "", own)):
        found.append("credentials beside code of a fork")
    if name != "synthesise" and re.search(
        r"ref: |head\.ref|refs/pull|git (fetch|checkout)|stacks\.workflow\.app", text
    ):
        found.append("code of a pull request beside credentials")
    for job in made["jobs"].values():
        rights = RIGHTS["deploy-environment" if job.get("uses") == CALLED else name]
        if not set((job.get("permissions") or {"all": "write"}).items()) <= rights:
            found.append("more rights than it needs")
        if job.get("environment") != WITH_CREDENTIALS.get(name):
            found.append("another environment")
        if "uses" in job and (job["uses"] != CALLED or set(job) != {"needs", "uses", "permissions", "with"}):
            found.append("another workflow")
        for step in job.get("steps", ()):
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
    assert problems(name, of_a_project()[f".github/workflows/{name}.yml"]) == []


CHECKOUT = "@3d3c42e5aac5ba805825da76410c181273ba90b1"


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("synthesise", "  pull_request:\n", "  pull_request_target:\n", "another trigger"),
        ("synthesise", "permissions: {}", "permissions: write-all", "rights by default"),
        ("synthesise", "FRAZIL_RELEASE: none", "GH_TOKEN: ${{ github.token }}", "credentials beside code of a fork"),
        ("review", "umask 077", "git fetch origin refs/pull/1/head", "code of a pull request beside credentials"),
        ("review", "environment: review-", "environment: deploy-", "another environment"),
        ("deploy", "      contents: read\n    outputs", "      id-token: write\n    outputs", "more rights than it needs"),
        ("deploy", "uses: ./.github/workflows/deploy-environment.yml", "uses: o/r/.github/workflows/x.yml@main", "another workflow"),
        ("review", CHECKOUT, "@v7", "not pinned: actions/checkout@v7"),
        ("review", "github.token", "secrets.TOKEN", "secrets of GitHub"),
        ("review", '"$ENVIRONMENT" --synth', '"${{ github.head_ref }}" --synth', "an expression inside a script"),
        ("review", "runner.temp }}/reviewed.json", "runner.temp }}", "something leaves the runner: actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02"),
        ("deploy-environment", "umask 077", "terraform show -json plan", "a plan is shown or copied"),
    ],
)  # fmt: skip
def test_each_rule_can_be_broken(name: str, old: str, new: str, problem: str, texts: dict[str, str]) -> None:
    assert old in texts[name]
    assert problem in problems(name, texts[name].replace(old, new))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_the_checkout_can_push_and_terraform_prints_nothing(name: str, texts: dict[str, str]) -> None:
    [job] = [job for job in yaml.safe_load(texts[name])["jobs"].values() if "steps" in job]
    by_name = {step.get("uses", "").partition("@")[0]: step.get("with", {}) for step in job["steps"]}
    assert by_name["actions/checkout"] == {"persist-credentials": False}
    if name in WITH_CREDENTIALS:
        terraform = by_name["hashicorp/setup-terraform"]
        assert (terraform["terraform_wrapper"], terraform["terraform_version"]) == (False, "1.11.4")


def test_review_and_deployment_synthesise_what_the_first_stage_does(texts: dict[str, str]) -> None:
    wanted = {
        line.split("#")[0].strip()
        for line in texts["synthesise"].splitlines()
        if re.search("FRAZIL_(PIPELINES|RELEASE):", line)
    }
    for name in ("review", "deploy-environment"):
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
    files = of_a_project()
    for name, text in files.items():
        if name.startswith(".github/workflows/"):
            (tmp_path / Path(name).name).write_text(text)
    found = [*(root / FOLDER).glob("*.yml"), *tmp_path.glob("*.yml")]
    assert len(found) >= 10
    ended = subprocess.run([*command, *found], cwd=root, env=settings, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "")


# ── Promotion ───────────────────────────────────────────────────────────────────────────────────
def test_one_digest_goes_from_dev_to_staging_to_prod(texts: dict[str, str]) -> None:
    """An environment waits for the one before, and its GitHub environment for the approval of its reviewers."""
    jobs = yaml.safe_load(texts["deploy"])["jobs"]
    assert {name: job.get("needs") for name, job in jobs.items()} == {
        "release": None,
        "dev": "release",
        "staging": ["release", "dev"],
        "prod": ["release", "staging"],
    }
    given = {name: job["with"] for name, job in jobs.items() if "with" in job}
    digest = "${{ needs.release.outputs.digest }}"
    assert given == {name: {"environment": name, "digest": digest} for name in ("dev", "staging", "prod")}
    [job] = yaml.safe_load(texts["deploy-environment"])["jobs"].values()
    assert job["concurrency"] == {"group": "deploy-${{ inputs.environment }}", "cancel-in-progress": False}
    assert [step["name"] for step in job["steps"] if "name" in step] == [
        *("Review of the merged pull request", "Packages, by their hashes", "Release", "Deploy", "Comment"),
        *("Reconcile", "Smoke"),
    ]


def test_the_template_of_a_project_differs_in_its_packages_only(root: Path, texts: dict[str, str]) -> None:
    files = of_a_project()
    for name in ("deploy", "deploy-environment"):
        steps = [yaml.safe_load(text)["jobs"] for text in (texts[name], files[f".github/workflows/{name}.yml"])]
        own, projects = (
            {
                job: [step.get("run") for step in found.get("steps", ()) if "pip install" not in step.get("run", "")]
                for job, found in each.items()
            }
            for each in steps
        )
        # A new project has one environment; the others of this repository are deployed by the same jobs.
        own = {
            job: [step and step.replace("check dev staging prod", "check dev") for step in steps]
            for job, steps in own.items()
            if job not in {"staging", "prod"}
        }
        assert own == projects


# ── The scripts of a deployment ─────────────────────────────────────────────────────────────────
STAND_IN = """#!/usr/bin/env bash
echo "$(basename "$0") $*" >> calls
for each in "$@"; do case "$each" in *refusing*) exit 1 ;; body=@*) cp "${each#body=@}" body ;; esac; done
case "$(basename "$0") $*" in
  *--paginate*) cat comments ;;
  "gh api repos/o/r/commits/"*) for each in "$@"; do filter=$each; done; jq -r "$filter" pulls ;;
  "gh api --method GET repos/o/r/actions/artifacts"*) for each in "$@"; do filter=$each; done; jq -r "$filter" artifacts ;;
  "gh api repos/o/r/actions/artifacts/"*) cat zip ;;
  "aws "*) echo '{"key": "k", "secret": "s"}' ;;
  "frazil release check"*) cat release ;;
  "frazil deploy apply"*) echo applied; exit "$(cat status)" ;;
  "frazil deploy smoke"*) echo "1 failed"; exit "$(cat status)" ;;
esac
"""


@dataclass
class Runner:
    """A runner in a folder, with stand-ins for the commands that need services."""

    folder: Path
    jobs: dict[str, Any]

    def write(self, name: str, content: object) -> None:
        (self.folder / name).write_text(content if isinstance(content, str) else json.dumps(content))

    def run(self, workflow: str, name: str, **variables: str) -> tuple[int, list[str], dict[str, str]]:
        """Run the step of this name; return exit status, calls and outputs."""
        steps = [step for job in self.jobs[workflow].values() for step in job.get("steps", ())]
        [step] = [step for step in steps if step.get("name") == name]
        for each in ("calls", "output", "summary"):
            (self.folder / each).write_text("")
        known = {"ENVIRONMENT": "dev", "REPOSITORY": "o/r", "MAIN": "main", "SHA": "f" * 40, "GITHUB_OUTPUT": "output"}
        known |= {"GITHUB_STEP_SUMMARY": "summary", "RUNNER_TEMP": str(self.folder / "temp")}
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", step["run"]],
            cwd=self.folder,
            env={**known, **variables, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        outputs = dict(line.split("=", 1) for line in (self.folder / "output").read_text().splitlines())
        return ended.returncode, (self.folder / "calls").read_text().splitlines(), outputs


@pytest.fixture
def deploying(tmp_path: Path, texts: dict[str, str]) -> Runner:
    for command in ("jq", "unzip"):
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed")
    for command in ("gh", "aws", "frazil"):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / command).write_text(STAND_IN)
        (tmp_path / "bin" / command).chmod(0o755)
    (tmp_path / "temp").mkdir()
    made = Runner(
        tmp_path, {name: yaml.safe_load(texts[name])["jobs"] for name in ("deploy", "deploy-environment", "review")}
    )
    made.write("status", "0")
    made.write("comments", "")
    return made


def pull(number: int, base: str = "main", merged: str | None = "2026") -> dict[str, Any]:
    return {"number": number, "merged_at": merged, "base": {"ref": base}, "head": {"sha": f"{number}" * 40}}


REVIEW = "Review of the merged pull request"


def test_the_review_is_that_of_the_pull_request_into_the_default_branch(deploying: Runner) -> None:
    """A pull request into another branch may have the same commit, and owners and rules of that branch."""
    deploying.write("pulls", [pull(1, "feature"), pull(2, merged=None), pull(3)])
    own = {"head_branch": "main", "head_repository_id": 1, "repository_id": 1}
    forks = [{"id": 8, "expired": False, "workflow_run": {**own, "head_repository_id": 2}}]
    deploying.write("artifacts", {"artifacts": [*forks, {"id": 9, "expired": False, "workflow_run": own}]})
    with zipfile.ZipFile(deploying.folder / "zip", "w") as packed:
        packed.writestr("reviewed.json", "{}")
    status, calls, outputs = deploying.run("deploy-environment", REVIEW)
    assert (status, outputs) == (0, {"number": "3"}), calls
    assert f"name=reviewed-dev-{'3' * 40}" in calls[1]
    assert calls[2] == "gh api repos/o/r/actions/artifacts/9/zip"
    assert (deploying.folder / "temp" / "reviewed.json").read_text() == "{}"


@pytest.mark.parametrize("pulls", [[], [pull(1, "feature")], [pull(2, merged=None)]])
def test_without_such_a_pull_request_no_review_counts(deploying: Runner, pulls: list[Any]) -> None:
    deploying.write("pulls", pulls)
    status, calls, outputs = deploying.run("deploy-environment", REVIEW)
    assert (status, outputs, len(calls)) == (0, {"number": ""}, 1)


@pytest.mark.parametrize(("told", "digest"), [({"digest": "ab" * 32}, "ab" * 32), ({"digest": None}, "")])
def test_the_digest_is_that_of_the_declared_release(deploying: Runner, told: Any, digest: str) -> None:
    deploying.write("release", told)
    status, calls, outputs = deploying.run("deploy", "One release for all environments")
    assert (status, outputs) == (0, {"digest": digest})
    assert calls == ["frazil release check dev staging prod --json"]


def test_the_files_are_checked_by_the_digest_before_they_are_uploaded(deploying: Runner) -> None:
    deploying.write("release", "")
    status, calls, _ = deploying.run("deploy-environment", "Release", DIGEST="ab" * 32)
    assert (status, [each.split(" --")[0] for each in calls]) == (
        0,
        [f"gh release download frazil-{'ab' * 8}", "frazil release check dev", "frazil release upload dev"],
    )
    assert calls[1].endswith(f"/temp/release --digest {'ab' * 32}")
    status, calls, _ = deploying.run("deploy-environment", "Release", DIGEST="refusing" + "0" * 32)
    assert (status, len(calls)) == (1, 1), "nothing is uploaded"


@pytest.mark.parametrize("status", ["0", "1", "4", "6"])
def test_the_reviewed_plan_is_applied_with_what_was_accepted(deploying: Runner, status: str) -> None:
    deploying.write("status", status)
    deploying.write("temp/reviewed.json", "{}")
    ended, calls, outputs = deploying.run("deploy-environment", "Deploy", CONFLUENT_SECRET="s", NUMBER="7")
    temp = deploying.folder / "temp"
    assert (ended, outputs) == (0, {"status": status}), "the next step reports it"
    assert calls[-1] == (
        f"frazil deploy apply dev --outputs {temp}/outputs.json --acceptances {temp}/acceptances.json --reviewed {temp}/reviewed.json"
    )
    assert (deploying.folder / "summary").read_text() == "applied\n"
    ended, _, _ = deploying.run("deploy-environment", "Comment", NUMBER="7", STATUS=status)
    assert ended == (0 if status == "0" else 1)


def test_the_runs_are_waited_for_and_probed(deploying: Runner) -> None:
    status, calls, _ = deploying.run("deploy-environment", "Reconcile")
    assert (status, calls) == (
        0,
        [f"frazil deploy fetch {deploying.folder}/temp/outputs.json", "frazil jobs reconcile dev --watch"],
    )
    for wanted in ("0", "1"):
        deploying.write("status", wanted)
        status, calls, _ = deploying.run("deploy-environment", "Smoke")
        assert (f"{status}", calls) == (wanted, ["frazil deploy smoke dev --minutes 25"])
        assert "1 failed" in (deploying.folder / "summary").read_text()


# ── The script that comments ────────────────────────────────────────────────────────────────────
def commented(runner: Runner, review: str, status: str) -> tuple[int, list[str], str]:
    """Exit status, calls and the comment's text."""
    runner.write("temp/review.md", review)
    ended, calls, _ = runner.run("review", "Comment", NUMBER="7", STATUS=status, RUN="https://run")
    return ended, calls, (runner.folder / "body").read_text()


PAGE = f"{marker('dev')}\n## Review\n"


@pytest.mark.parametrize(("comments", "request_"), [("", "POST {}/7/comments"), ("41\n42\n", "PATCH {}/comments/41")])
def test_a_review_is_a_new_comment_or_takes_the_place_of_the_one_before(
    deploying: Runner, comments: str, request_: str
) -> None:
    deploying.write("comments", comments)
    status, calls, body = commented(deploying, PAGE, "4")
    assert (status, body) == (0, PAGE)
    assert calls[-2].startswith(f"gh api --silent --method {request_.format('repos/o/r/issues')} ")
    assert f"repos/o/r/statuses/{'f' * 40} -f state=success -f context=frazil/review-dev" in calls[-1]


@pytest.mark.parametrize(("told", "wanted"), [("0", 0), ("4", 0), ("1", 1), ("2", 1), ("5", 1), ("", 1)])
def test_a_refused_review_fails_after_it_was_posted(deploying: Runner, told: str, wanted: int) -> None:
    status, calls, _ = commented(deploying, PAGE, told)
    assert status == wanted
    assert len(calls) == 3
    assert f"-f state={'failure' if told == '1' else 'error' if wanted else 'success'} " in calls[-1]


@pytest.mark.parametrize("page", ["", "Traceback\n"])
def test_a_review_that_could_not_be_made_says_so_and_fails(deploying: Runner, page: str) -> None:
    status, _, body = commented(deploying, page, "4")
    assert status == 1
    assert "it could not be made" in body
    assert body.startswith(marker("dev"))


def test_comments_are_looked_for_by_what_reviews_begin_with(texts: dict[str, str]) -> None:
    assert f'marker="{marker("$ENVIRONMENT").replace("ENVIRONMENT", "$ENVIRONMENT")}"' in texts["review"]
