"""The two slots of the jobs' keys: which exist at a step, and that the present key is one of them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from frazil.errors import InvalidInput
from infra.tf import App
from stacks.spec.deployments import DEPLOYMENTS
from stacks.spec.reader_keys import Slot, slots_at, wanted_step
from stacks.workflow import app, describe
from stacks.workflow.deployed import Deployed, read, write
from tests.stacks.synthesised import resources, stacks_of, synthesised
from tests.stacks.test_first_deployment import DECLARED
from tests.stacks.workflow.test_app import ALL

DEV = DEPLOYMENTS["dev"]
A, B = Slot.A, Slot.B


def test_a_new_key_exists_before_it_is_used_and_the_old_one_goes_afterwards() -> None:
    steps = [slots_at(step) for step in range(13)]
    for before, after in itertools.pairwise(steps):
        assert before.active in after.made, "what is used now is not deleted in the same step"
    assert [step.active for step in steps] == [A, B, B, B, A, A, A, B, B, B, A, A, A]
    assert [step.made for step in steps[:7]] == [(A,), (A, B), (B,), (B,), (A, B), (A,), (A,)]


def keys(step: int) -> tuple[dict[str, Any], dict[str, str]]:
    """The readers' keys of a stack by name, and the fields of the secret."""
    stack = synthesised(DEV, key_step=step)["confluent"]
    found = {name: key for name, key in resources(stack, "confluent_api_key").items() if name.startswith("reader_")}
    [version] = resources(stack, "aws_secretsmanager_secret_version").values()
    return found, json.loads(version["secret_string"])


@pytest.mark.long
def test_the_present_key_is_slot_a_at_its_address() -> None:
    before = {name for name in resources(stacks_of("dev")["confluent"], "confluent_api_key") if "reader_" in name}
    both, secret = keys(1)
    assert before < set(both)
    new = {name: key for name, key in both.items() if name not in before}
    assert {key["display_name"] for key in new.values()} == {
        "frazil-dev-reader-kafka-b",
        "frazil-dev-reader-registry-b",
    }
    for field, value in secret.items():
        [named] = [name for name in both if f"confluent_api_key.{name}." in value]
        assert named in new, f"{field} is of the new key"
    registry = {name: key["depends_on"] for name, key in both.items() if "registry" in name}
    assert len({tuple(each) for each in registry.values()}) == 1, "both wait for the same rights"
    only, secret = keys(2)
    assert set(only) == set(new)
    assert keys(4)[0].keys() == both.keys()
    assert keys(5)[0].keys() == keys(0)[0].keys() == before


@pytest.mark.parametrize("text", ["2", "-1", "x", "٣", "0"])
def test_another_step_than_the_next_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not the step after"):
        wanted_step({"FRAZIL_KEY_STEP": text}, 3)


def test_a_synthesis_keeps_the_step_of_the_file_and_writes_the_wanted_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(app, "App", lambda: App(outdir=str(tmp_path / "cdktf.out")))
    (tmp_path / "pipelines.py").write_text(DECLARED)
    file = tmp_path / "deployed" / "dev.json"

    def step() -> int | None:
        found = read(file, "dev")
        assert found is not None
        return found.key_step

    assert app.main(ALL) == 0
    assert "key_step" not in file.read_text(), "files of deployments that never rotated stay as they are"
    assert app.main({**ALL, "FRAZIL_KEY_STEP": "1"}) == 0
    assert step() == 1
    assert app.main(ALL) == 0
    assert step() == 1
    stack = (tmp_path / "cdktf.out" / "stacks" / "dev-confluent" / "cdk.tf.json").read_text()
    assert "frazil-dev-reader-kafka-b" in stack
    assert app.main({**ALL, "FRAZIL_KEY_STEP": "3"}) == 2
    assert "FRAZIL_KEY_STEP: 3 is not the step after 1" in capsys.readouterr().err


def test_commands_learn_step_and_secret_from_the_description(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FRAZIL_DEPLOYED", raising=False)

    def described() -> tuple[Any, ...]:
        assert describe.main(["dev"]) == 0
        members = json.loads(capsys.readouterr().out)
        return members["key_step"], members["has_own_keys"], members["reader_secret"]

    assert described() == (None, True, "frazil/dev/confluent-reader")
    write(tmp_path / "deployed" / "dev.json", Deployed(environment="dev"))
    assert described()[0] == 0
    write(tmp_path / "deployed" / "dev.json", Deployed(environment="dev", key_step=4))
    assert described()[0] == 4
