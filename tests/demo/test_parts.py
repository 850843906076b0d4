"""The parts of `make deploy-demo` that need no cloud."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import cast

import pytest
from rich.console import Console
from typer.testing import CliRunner

from frazil.cli.demo.topics import planes
from frazil.cli.main import app
from frazil.clients.registry.admin import RegistryAdmin
from tests.demo import checkout as own_checkout
from tests.demo import project
from tests.demo.machine import Missing, clean, terraform_settings
from tests.demo.producing import DELETED_EVERY, SPOILT_EVERY, STATE, Feed, Journal
from tests.demo.steps import StepFailed, Steps
from tests.demo.summary import Account, Summary, write


def steps_in(folder: Path) -> Steps:
    (folder / "logs").mkdir()
    console = Console(file=StringIO())
    return Steps(folder=folder, logs=folder / "logs", environment=dict(os.environ), console=console)


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    place = tmp_path / "checkout"
    place.mkdir()
    own_checkout.make(root, place)
    return place


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / project.NAME
    begun = CliRunner().invoke(app, ["init", str(folder), "--kafka", "local", "--aws", "--yes"])
    assert begun.exit_code == 0, begun.output
    return folder


@pytest.mark.long
def test_what_is_declared_and_the_change_fit_the_stacks_as_they_are(lake: Path, root: Path) -> None:
    environment = {**clean(os.environ, root), "PYTHONPATH": f"{root}{os.pathsep}{root / 'jobs'}"}
    environment |= {"FRAZIL_ENVIRONMENTS": "dev", "FRAZIL_RELEASE": "none"}
    for edit in (project.declare, project.change):
        edit(lake)
        for file in (lake / project.INFRA, lake / project.PIPELINES):  # no wheel is installed here
            file.write_text(file.read_text().replace("from frazil_deploy.", "from "))
        (own_checkout.commit if edit is project.change else own_checkout.begin)(lake, "x")
        command = [sys.executable, project.INFRA]
        ended = subprocess.run(command, cwd=lake, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        if edit is project.declare:
            for file in (lake / project.INFRA, lake / project.PIPELINES):
                file.write_text(file.read_text().replace("from infra.", "from frazil_deploy.infra."))
    shown = own_checkout.difference(lake).splitlines()
    assert '+    ManagedTopic("weather", partitions=3),' in shown
    assert "-        schema_evolution=SchemaEvolution.FREEZE," in shown
    assert '+    Retired("confluent_kafka_topic", "planes", reason="its producer has ended"),' in shown


def test_a_file_that_is_not_as_expected_is_named(lake: Path) -> None:
    project.declare(lake)
    (lake / project.PIPELINES).write_text("topics = []\n")
    with pytest.raises(ValueError, match="pipelines.py"):
        project.change(lake)


def test_a_broken_release_is_a_later_version_whose_runs_cannot_start(checkout: Path) -> None:
    version = own_checkout.next_version("0.2.0.dev0")
    own_checkout.raise_version(checkout)
    assert f'version = "{version}"' in (checkout / "pyproject.toml").read_text()
    own_checkout.break_ingest(checkout)
    ended = subprocess.run(
        [sys.executable, "jobs/ingest.py"], cwd=checkout, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (1, "this release cannot start\n")


def test_no_variable_that_leads_to_an_account_reaches_a_command(root: Path) -> None:
    given = {
        "AWS_PROFILE": "prod",
        "AWS_SECRET_ACCESS_KEY": "x",
        "CONFLUENT_CLOUD_API_KEY": "x",
        "TF_VAR_x": "x",
        "FRAZIL_DESTROY_DATA": "prod",
        "GIT_DIR": "x",
        "LANG": "C",
        "PATH": "p",
    }
    found = clean(given, root)
    assert not {"AWS_PROFILE", "AWS_SECRET_ACCESS_KEY", "FRAZIL_DESTROY_DATA", "GIT_DIR", "TF_VAR_x"} & found.keys()
    assert not [name for name in found if name.startswith("CONFLUENT")]
    assert found["LANG"] == "C"
    assert found["PATH"].endswith(f"{os.pathsep}p")


def test_missing_programs_are_told_at_once(root: Path, tmp_path: Path) -> None:
    for name in ("bash", "dirname", "sed"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    command = [str(tmp_path / "bash"), str(root / ".ci" / "setup-deploy"), "--check"]
    ended = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert ended.returncode == 3
    assert "nothing was started" in ended.stderr
    for name in ("go", "terraform", "node", "npm", "git"):
        assert f"  {name} is not found" in ended.stderr


@pytest.mark.long  # it compiles the stand-in's provider first
def test_a_provider_that_is_not_to_be_had_is_told(root: Path, tmp_path: Path) -> None:
    if not (shutil.which("go") and shutil.which("terraform")):
        pytest.skip("Go or Terraform is not installed")
    (tmp_path / "mirror").mkdir()
    variables = {**os.environ, "FRAZIL_TERRAFORM_MIRRORS": str(tmp_path / "mirror")}
    with pytest.raises(Missing, match="hashicorp/aws"):
        terraform_settings(root, tmp_path, variables)


def test_a_command_that_fails_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    steps = steps_in(tmp_path)
    with pytest.raises(StepFailed, match=r"exit code 4, and not 0(?s:.*)the end") as failed:
        steps.run("it fails", "bash", "-c", "echo the end; exit 4")
    assert failed.value.log is not None
    assert "the end" in failed.value.log.read_text()
    assert steps.done == []
    steps.run("it refuses", "bash", "-c", "exit 4", expect=(4,))
    assert [(step.name, step.exit) for step in steps.done] == [("it refuses", 4)]


FINE = Account(produced=10, spoilt=2, landed=8, dead_lettered=2, is_same=True, verified="proven", read=10)


@pytest.mark.parametrize(
    "wrong",
    [
        {"landed": 7},
        {"landed": 9},
        {"dead_lettered": 3, "landed": 7},
        {"is_same": False},
        {"verified": "not_proven"},
        {"read": 9},
        {"superseded": 1},
        {"superseded": 1, "landed": 7, "is_same": False},
    ],
)
def test_an_account_in_which_anything_is_wrong_does_not_add_up(wrong: dict[str, object]) -> None:
    assert FINE.adds_up
    assert replace(FINE, superseded=3, landed=5).adds_up
    assert not replace(FINE, **wrong).adds_up  # type: ignore[arg-type]


def test_the_page_tells_what_was_proven_and_what_failed(tmp_path: Path) -> None:
    summary = Summary(topics={"flights": FINE}, left={}, failure="it broke")
    page = write(summary, tmp_path)
    assert "| flights | 10 | 8 | 0 | 2 | proven | the same records, each once |" in page
    assert "it broke" in page
    assert "nothing" in page
    assert (tmp_path / "summary.md").read_text() == page


def test_a_feed_of_the_state_deletes_some_keys_and_spoils_nothing() -> None:
    class Registry:
        def register(self, *given: object) -> int:
            return 7

    state = Feed(replace(planes(), topic=STATE), cast("RegistryAdmin", Registry()))
    records = list(chain.from_iterable(state.next() for _ in range(2 * DELETED_EVERY)))
    assert [number for number, (_, value, _) in enumerate(records) if value is None] == [25, 51]
    assert records[25][0] == records[24][0]
    assert not any(is_spoilt for _, _, is_spoilt in records)
    other = Feed(planes(), cast("RegistryAdmin", Registry()))
    records = list(chain.from_iterable(other.next() for _ in range(SPOILT_EVERY)))
    assert [is_spoilt for _, _, is_spoilt in records] == [False] * 100 + [True]


def test_the_rows_of_a_state_are_the_last_records_of_its_keys() -> None:
    journal = Journal(last={b"a": (0, 3)})
    journal.good[STATE] |= {(0, 1), (0, 2), (0, 3)}
    journal.good["planes"] |= {(0, 1)}
    assert (journal.rows(STATE), journal.rows("planes"), journal.count(STATE)) == ({(0, 3)}, {(0, 1)}, 3)


def test_the_version_of_the_change_is_a_later_one() -> None:
    assert [own_checkout.next_version(version) for version in ("0.2.0.dev0", "0.2.0", "1.9.9")] == [
        "0.2.0",
        "0.2.1",
        "1.9.10",
    ]
