"""Stacks of groups that another checkout synthesised: they are checked and planned like the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stacks import foreign_stacks
from stacks.deployments import DEPLOYMENTS, Deployment
from stacks.foreign_stacks import checked, is_as_trusted
from stacks.terraform_command import NotPlanned
from tests.stacks.synthesised import EXAMPLE, EXAMPLE_TOPICS, named, synthesised
from tests.stacks.test_groups import DEV, PAYMENTS, WIDE

Stacks = dict[str, dict[str, Any]]


def written(folder: Path, stacks: Stacks) -> Path:
    """The stacks of dev in the folders that a checkout writes."""
    for what, content in stacks.items():
        (folder / f"dev-{what}").mkdir(parents=True)
        (folder / f"dev-{what}" / "cdk.tf.json").write_text(json.dumps(content))
    return folder


@pytest.fixture(scope="module")
def grouped() -> Stacks:
    return synthesised(WIDE, (*EXAMPLE, *PAYMENTS), EXAMPLE_TOPICS)


@pytest.fixture(scope="module")
def single() -> Stacks:
    return synthesised(WIDE)


def trusting(monkeypatch: pytest.MonkeyPatch, stacks: Stacks) -> None:
    """Let this checkout synthesise these stacks."""

    def done(deployment: Deployment, folder: Path, settings: Any, app: Any) -> dict[str, Path]:
        return {each.name: each for each in written(folder / "cdktf.out" / "stacks", stacks).iterdir()}

    monkeypatch.setattr(foreign_stacks, "synthesise", done)


def test_a_new_group_is_planned(
    grouped: Stacks, single: Stacks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trusting(monkeypatch, single)
    (tmp_path / "private").mkdir()
    found = checked(DEV, written(tmp_path / "given", grouped), tmp_path / "private", {})
    assert list(found) == ["dev-foundation", "dev-confluent", "dev-ingestion", "dev-ingestion-payments"]
    assert not is_as_trusted(tmp_path / "private")


@pytest.mark.parametrize("section", ["provider", "terraform"])
def test_a_new_group_has_no_provider_and_no_state_of_its_own_choice(
    section: str, grouped: Stacks, single: Stacks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trusting(monkeypatch, single)
    (tmp_path / "private").mkdir()
    odd = {**grouped, "ingestion-payments": {**grouped["ingestion-payments"], section: grouped["ingestion"][section]}}
    with pytest.raises(NotPlanned, match=f"dev-ingestion-payments: {section}: it is another one"):
        checked(DEV, written(tmp_path / "given", odd), tmp_path / "private", {})


def test_a_folder_whose_name_is_no_groups_is_refused(
    grouped: Stacks, single: Stacks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trusting(monkeypatch, single)
    (tmp_path / "private").mkdir()
    odd = {**single, "ingestion-Pay ments": grouped["ingestion-payments"]}
    with pytest.raises(NotPlanned, match="it is no name of a group"):
        checked(DEV, written(tmp_path / "given", odd), tmp_path / "private", {})


def test_a_group_that_only_the_base_branch_has_is_not_left_out_in_silence(
    grouped: Stacks, single: Stacks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trusting(monkeypatch, grouped)
    (tmp_path / "private").mkdir()
    with pytest.raises(NotPlanned, match="dev-ingestion-payments: it cannot be read"):
        checked(DEV, written(tmp_path / "given", single), tmp_path / "private", {})


def test_the_expected_stack_of_a_new_group_is_the_one_that_is_synthesised() -> None:
    local = named(DEPLOYMENTS["local"], runs=WIDE.runs, groups=WIDE.groups)
    stacks = synthesised(local, (*EXAMPLE, *PAYMENTS), EXAMPLE_TOPICS)
    found = foreign_stacks._expected("local-ingestion-payments", local, {"local-ingestion": stacks["ingestion"]})
    assert found == {section: stacks["ingestion-payments"][section] for section in ("provider", "terraform")}
