"""The first deployment of a project that has the wheel and nothing of a checkout, by the commands of docs/guides/first-deployment.md.

AWS is moto, Confluent is its stand-in, Kafka and Spark are real. One deployment is edited: that its clouds are stand-ins.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from frazil.local.services import down
from frazil.local.toolchain.jars import cache_folder
from stacks.spec.deployments import DEPLOYMENTS
from tests.demo.machine import clean
from tests.standin.__main__ import up as local_cloud
from tests.support.guides import block, blocks
from tests.support.standin import Terraform

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(3600)]

ACCOUNT = DEPLOYMENTS["local"].account
GUIDE = "first-deployment.md"
DECLARED = f"""access=Access(deployers=("arn:aws:iam::{ACCOUNT}:role/ci",)),
            runs=SMALL,
"""
EDITED = f"""access=Access(deployers=("arn:aws:iam::{ACCOUNT}:role/ci",)),
            is_local=True,
            emr=Emr(architecture="X86_64"),
            runs=replace(SMALL, mode="follow", freshness_minutes=10, idle_minutes=1),
"""
CHANGES = 4


@dataclass
class Project:
    """A folder, and the variables of a shell with a home of its own, in which Frazil is the installed wheel."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def frazil(self, *words: str, expect: int = 0) -> str:
        command = [sys.executable, str(Path(self.variables["PYTHONPATH"], "bin", "frazil")), *words]
        ended = subprocess.run(
            command, cwd=self.folder, env=self.variables, capture_output=True, text=True, check=False, timeout=1500
        )
        assert ended.returncode == expect, (
            f"{words}: {ended.returncode}\n{ended.stdout[-6000:]}\n{ended.stderr[-4000:]}"
        )
        return ended.stdout

    def follow(self, section: str) -> None:
        """Run Frazil's commands of a section of the guide, confirmed, and compare what the last ones print with its texts."""
        printed: list[str] = []
        for one in blocks(GUIDE, section):
            lines = [words for command in one.commands if (words := shlex.split(command))[0] == "frazil"]
            if lines:
                printed = [line for words in lines for line in self._confirmed(words[1:]).splitlines()]
            elif one.language == "text":
                for line in one.text.replace("111111111111", ACCOUNT).splitlines():
                    assert any(each.startswith(line) for each in printed), (line, printed)

    def _confirmed(self, words: list[str]) -> str:
        if words[:2] in (["deploy", "up"], ["deploy", "bootstrap"]) and "--check" not in words:
            words = [*words, "--yes"]
        return self.frazil(*words, expect=CHANGES if {"--check", "--offline"} & {*words} else 0)

    def reviewed(self, *options: str, expect: int) -> str:
        return self.frazil("deploy", "plan", "dev", *options, expect=expect)


@pytest.fixture
def project(root: Path, tmp_path: Path, terraform: Terraform) -> Iterator[Project]:
    site, home, folder = tmp_path / "site", tmp_path / "home", tmp_path / "shop"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--no-build-isolation", "--target", str(site), str(root)], check=True, cwd=tmp_path)
    for each in (home, folder):
        each.mkdir()
    variables = {
        **clean(os.environ, root),
        **terraform.settings,
        "HOME": str(home),
        "XDG_CACHE_HOME": str(cache_folder().parent),
        "PYTHONPATH": str(site),
    }
    try:
        yield Project(folder, variables)
    finally:
        down(folder, data=True)


def test_a_project_of_the_wheel_is_reviewed_released_deployed_and_lands_its_records(project: Project) -> None:
    project.frazil("init", ".", "--kafka", "local", "--aws", "--yes")  # with the sample of records
    declare(project)
    project.follow("## 2. Cost and review, without an account")
    offline = project.reviewed("--offline", expect=CHANGES)
    assert "\nNo dangers." in offline
    assert re.search(r"\| `orders` \| `\w+\.orders` \| new \|", offline)
    assert "| EMR Serverless | 0.00 |" in offline

    exports = local_cloud(project.folder)["exports"]
    project.variables |= exports
    project.follow("## 3. Prepare the account, once")
    assert_first_plan_is_the_offline_one(project, offline)
    project.follow("## 4. Deploy without a release")
    project.frazil("local", "produce", "orders", "orders.jsonl")

    project.follow("## 5. Deploy the release")
    [manifest] = project.folder.glob(".frazil/releases/dev/*/manifest.json")
    release = json.loads(manifest.read_text())["release"]
    assert (release["wheel_sha256"][:12], release.get("git_commit")) == (manifest.parent.name, None)
    assert "10" in project.frazil("query", "--env", "dev", "--csv", "select count(*) from orders").splitlines()

    again = project.frazil("deploy", "up", "dev", "--yes")
    assert "is built already" in again
    assert [line for line in again.splitlines() if line.startswith("dev-")] == [
        f"dev-{what}: nothing changes" for what in ("foundation", "confluent", "ingestion")
    ]
    shutil.rmtree(project.folder / ".frazil" / "releases")


def declare(project: Project) -> None:
    """Declare what the guide declares, but for an account of stand-ins."""
    file = project.folder / "infra_app.py"
    written = block(GUIDE, "infra_app.py").replace("111111111111", ACCOUNT)
    file.write_text(f"from dataclasses import replace\n\n{written}")
    edit(file, "Deployment\n", "Deployment, Emr\n")
    edit(file, DECLARED, EDITED)
    [topics] = (one.text for one in blocks(GUIDE) if "ManagedTopic" in one.text)
    file = project.folder / "pipelines.py"
    file.write_text(f"{file.read_text()}\n{topics}")


def assert_first_plan_is_the_offline_one(project: Project, offline: str) -> None:
    """Terraform can plan the first stack of an empty account completely: it shows the same creations and permissions."""
    real = project.reviewed("--release", "none", expect=1)

    def of_foundation(page: str) -> tuple[list[str], list[str]]:
        resources = [line for line in page.splitlines() if line.startswith("- `dev-foundation`: ")]
        addresses = {line.split("`")[3] for line in resources}
        listed = page.partition("### Who may do what\n\n")[2].partition("\n\n")[0]
        policies = [each.strip() for each in re.split(r"^- ", listed, flags=re.MULTILINE)[1:]]
        mine = [each for each in policies if each.split("`")[1] in addresses and "not known before" not in each]
        return sorted(resources), mine

    assert of_foundation(offline)[0]
    assert of_foundation(real) == of_foundation(offline)


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, (old, text)
    file.write_text(text.replace(old, new))
