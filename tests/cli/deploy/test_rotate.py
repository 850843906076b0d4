"""`frazil deploy rotate-keys`: its steps in order, from the step that the file names.

The program that plans and applies is replaced; `tests/stacks/test_rotated_keys.py` runs it. AWS is moto, the runs are in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner, Result

from frazil.cli.deploy.account import remaining
from frazil.cli.main import app
from frazil.project.environments import environment
from frazil.rollout.desired import desired_document, desired_key
from tests.support.deploying_project import describe, make_project
from tests.support.rollout_world import BUCKET, DEV, JOB, World, desired

SECRET, REGION = "frazil/dev/confluent-reader", "eu-central-1"
APPLIES = """
[step] = [int(each.partition("=")[2]) for each in arguments if each.startswith("--key-step=")]
# As stacks.workflow.deploy does: the file first, then the apply.
found["dev"]["key_step"] = step
described.write_text(json.dumps(found))
with open("log", "a") as log:
    log.write(json.dumps([step, arguments[-1], os.environ["FRAZIL_RELEASE"]]) + "\\n")
failing = pathlib.Path("failing")
if failing.exists() and int(failing.read_text()) == step:
    failing.unlink()
    sys.exit(6)
"""


@dataclass
class Shop:
    """A project, with what its account holds."""

    folder: Path
    world: World
    s3: Any

    def rotate(self, *options: str) -> Result:
        return CliRunner().invoke(app, ["deploy", "rotate-keys", "dev", "--yes", *options])

    def steps(self) -> list[int]:
        log = self.folder / "log"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        log.unlink(missing_ok=True)
        assert all(line[1:] == ["confluent", "none"] for line in lines)
        return [line[0] for line in lines]

    def step(self) -> int:
        return int(json.loads((self.folder / "described.json").read_text())["dev"]["key_step"])


@pytest.fixture
def shop(folder: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    make_project(folder, APPLIES)
    places = {"region": REGION, "artifact_bucket": BUCKET, "reader_secret": SECRET}
    describe(folder, **places, has_own_keys=True, key_step=0)
    monkeypatch.setattr("frazil.project.environments.environment", lambda name: DEV)
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket=BUCKET)
        boto3.client("secretsmanager", region_name=REGION).create_secret(Name=SECRET, SecretString="{}")
        yield Shop(folder, world, client)


def test_the_remaining_steps_are_those_of_one_rotation() -> None:
    assert [list(remaining(step)) for step in (2, 3, 5, 6)] == [[2, 3], [4, 5, 6], [5, 6], [7, 8, 9]]


def test_the_old_key_is_deleted_last_and_the_next_rotation_goes_back(shop: Shop) -> None:
    ended = shop.rotate()
    assert ended.exit_code == 0, ended.output
    assert shop.steps() == [1, 2, 3]
    assert ended.stdout.splitlines() == [
        "keys: no release is deployed, so no run has keys",
        "keys: rotated. Commit deployed/dev.json",
    ]
    assert shop.rotate().exit_code == 0
    assert shop.steps() == [4, 5, 6]


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_rotation_that_ended_anywhere_is_finished_by_the_next_one(shop: Shop, step: int) -> None:
    (shop.folder / "failing").write_text(str(step))
    assert shop.rotate().exit_code == 6
    assert shop.steps()[-1] == step
    assert shop.rotate().exit_code == 0
    # The last step changes nothing: whoever began it has rotated, and the next one begins.
    assert shop.steps() == ([4, 5, 6] if step == 3 else list(range(step, 4)))


@pytest.mark.long
def test_the_old_key_stays_if_runs_do_not_take_the_new_one(shop: Shop) -> None:
    world = shop.world
    shop.s3.put_object(Bucket=BUCKET, Key=desired_key(JOB), Body=desired_document(desired()))
    world.time.now = 4e9  # after the secret was stored
    world.failing.add(1)
    world.want(desired())
    ended = shop.rotate("--minutes", "30")
    assert ended.exit_code == 1, ended.output
    assert (shop.steps(), shop.step()) == ([1], 1)


def test_runs_that_cannot_be_awaited_end_it_before_the_first_step(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.s3.put_object(Bucket=BUCKET, Key=desired_key(JOB), Body=desired_document(desired()))
    monkeypatch.setattr("frazil.project.environments.environment", environment)
    ended = shop.rotate()
    assert (ended.exit_code, shop.steps()) == (2, []), ended.output


def test_keys_that_were_given_are_not_rotated(shop: Shop) -> None:
    describe(shop.folder, has_own_keys=False)
    ended = shop.rotate()
    assert (ended.exit_code, shop.steps()) == (2, [])
    assert "its keys were given by reader_secret. Create a key at Confluent" in ended.stderr


def test_without_the_file_that_knows_the_step_nothing_is_rotated(shop: Shop) -> None:
    describe(shop.folder, key_step=None)
    ended = shop.rotate()
    assert (ended.exit_code, shop.steps()) == (2, [])
    assert "deployed/dev.json is missing" in ended.stderr
