"""The first deployment by cdktf, with the commands that docs/deploy.md prints, in order, for each environment.

CDKTF's program is stood for by the synthesis that it runs; a release is not built, but described by a manifest for the label and
the processors that its command asks for.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from frazil.cli import release as release_command
from frazil.cli.jobs import aws
from frazil.cli.main import app as frazil
from frazil.declaration import Environment, GlueCatalog, Kafka
from frazil.project import environments
from frazil.release.manifest import Release, manifest
from infra.tf import App
from stacks.spec.deployments import DEPLOYMENTS
from stacks.workflow import app
from tests.stacks.synthesised import release
from tests.support.fake_store import FakeStore

HEADING = "## Deploy with cdktf\n"
DECLARED = """
from frazil.declaration import Pipeline, Table, Topic
from infra.confluent.managed_topic import ManagedTopic
pipelines = [Pipeline(topic=Topic("orders", value="avro"), table=Table("shop.orders"))]
topics = [ManagedTopic("orders")]
"""


def commands(text: str, heading: str) -> Iterator[str]:
    """The lines of the first block of commands below a heading."""
    section = text[text.index(heading) :]
    found = re.search(r"```\n(.+?)```|((?:^    \S[^\n]*\n)+)", section, re.MULTILINE | re.DOTALL)
    assert found is not None
    yield from filter(None, map(str.strip, (found[1] or found[2]).splitlines()))


@dataclass
class Shell:
    """Runs such lines in a folder, for one environment."""

    folder: Path
    environment: str
    variables: dict[str, str] = field(default_factory=dict)
    store: FakeStore = field(default_factory=FakeStore)
    deployed: list[str] = field(default_factory=list)

    def run(self, line: str) -> None:
        words = shlex.split(re.sub(r"\bdev\b", self.environment, line), comments=True)
        given = {}
        while words and re.match(r"[A-Z_]+=", words[0]):
            name, _, value = words.pop(0).partition("=")
            given[name] = value
        match words:
            case ["export", *settings]:
                self.variables |= dict(each.split("=", 1) for each in settings)
            case ["npm", "ci", "--ignore-scripts"]:
                pass  # it asks a registry
            case ["npx", "--no-install", "cdktf", "deploy", *stacks]:
                assert app.main({**self.variables, **given}) == 0
                self.deployed += [each for each in stacks if each.startswith(self.environment)]
            case ["git", "add", file]:
                assert (self.folder / file).is_file() or DEPLOYMENTS[self.environment].is_local
            case ["frazil", "release", *arguments]:
                ended = CliRunner().invoke(frazil, ["release", *arguments])
                assert ended.exit_code == 0, ended.output
            case ["frazil", "deploy" | "jobs", *_]:
                pass  # they ask AWS
            case _:
                raise AssertionError(f"what is this? {line}")


@pytest.fixture
def shell(request: pytest.FixtureRequest, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    name: str = request.param
    deployment, made = DEPLOYMENTS[name], Shell(folder=tmp_path, environment=name)
    (tmp_path / "my_pipelines.py").write_text(DECLARED)
    place = Environment(
        name=name,
        kafka=Kafka(bootstrap="b:9092"),
        catalog=GlueCatalog(warehouse="s3://lake/x", region="eu-central-1"),
        artifact_bucket="artifacts",
    )

    def described(environment: str, start: Path) -> dict[str, Any]:
        assert environment == name
        return {"label": deployment.emr.label, "architecture": deployment.emr.architecture}

    def built(start: Path, folder: Path, *, label_name: str, architecture: Any) -> Release:
        folder.mkdir()
        files = []
        for file in release(architecture).files:
            (folder / file.name).write_bytes(file.name.encode())
            files.append(replace(file, sha256=hashlib.sha256(file.name.encode()).hexdigest()))
        described = replace(release(architecture), label=label_name, files=tuple(files))
        (folder / "manifest.json").write_bytes(manifest(described))
        return described

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(app, "App", lambda: App(outdir=str(tmp_path / "cdktf.out")))
    monkeypatch.setattr(environments, "environment", lambda choice: place)
    monkeypatch.setattr(aws, "artifact_store", lambda place, secrets: made.store)
    for function in ("description", "required_description"):
        monkeypatch.setattr(release_command, function, described)
    monkeypatch.setattr(environments, "is_known", lambda choice: True)
    monkeypatch.setattr(release_command, "built", built)
    return made


@pytest.mark.parametrize("shell", DEPLOYMENTS, indirect=True)
def test_the_commands_of_cdktf_end_with_schedules_and_desired_state(root: Path, shell: Shell) -> None:
    for line in commands((root / "docs" / "deploy.md").read_text(), HEADING):
        shell.run(line)
    assert shell.deployed == [
        f"{shell.environment}-{what}" for what in ("foundation", "confluent", "ingestion", "ingestion")
    ]
    stack = shell.folder / "cdktf.out" / "stacks" / f"{shell.environment}-ingestion" / "cdk.tf.json"
    resources = json.loads(stack.read_text())["resource"]
    [uploaded] = [key for key in shell.store.objects if key.startswith("releases/")]
    assert uploaded in resources["aws_s3_object"]["desired"]["content"]
    assert resources["aws_scheduler_schedule"]


@pytest.mark.parametrize(
    ("page", "heading"), [("README.md", "## In your own account"), ("docs/deploy.md", "## Deploy\n")]
)
def test_the_short_way_is_a_few_lines_of_commands_that_exist(root: Path, page: str, heading: str) -> None:
    lines = list(commands((root / page).read_text(), heading))
    assert len(lines) <= 8
    for line in lines:
        match shlex.split(line, comments=True):
            case ["frazil", "deploy", command, "dev", *options]:
                group = get_command(frazil).commands["deploy"]
                known = {flag for parameter in group.commands[command].params for flag in parameter.opts}
                assert {each for each in options if each.startswith("--")} <= known
            case ["frazil", "init", "--kafka", "confluent", "--aws", "--yes"]:
                pass  # tests/stacks/test_wheel_project.py runs it
            case ["export", *_] | ["git", "add", "deployed/dev.json"] | ["pip", "install", "frazil[infra]"]:
                pass
            case _:
                raise AssertionError(line)
