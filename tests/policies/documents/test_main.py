"""A policy that a person makes by hand is told by a command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policies.documents.__main__ import main
from tests.policies.example import policy

GIVEN = [
    "prefix=frazil-dev",
    "environment=dev",
    "region=eu-central-1",
    "account=123456789012",
    "state_bucket=frazil-dev-state",
    "iam_path=/",
    "given_buckets=",
    "given_keys=",
]


def test_a_policy_is_told_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boundary", *GIVEN, "databases=nyc,shop"]) == 0
    assert json.loads(capsys.readouterr().out) == policy("boundary")


def test_without_values_the_placeholders_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boundary"]) == 0
    told = capsys.readouterr().out.split()
    assert told == [f"{name}=…" for name in sorted(["databases", *(each.partition("=")[0] for each in GIVEN)])]


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["boundary", *GIVEN], ["boundary", *GIVEN, "databases=*"]])
def test_what_is_wrong_is_told_and_nothing_is_written(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")


COMMANDS = [
    line.strip().partition(" >")[0].split()[3:]
    for page in ("existing-account", "policies")
    for line in Path(f"docs/{page}.md").read_text().splitlines()
    if line.strip().startswith("python -m policies.documents")
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_the_commands_of_the_pages_print_policies(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["Statement"]


def test_a_policy_of_another_partition_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["boundary", *GIVEN, "databases=nyc", "partition=aws-us-gov"]) == 0
    text = capsys.readouterr().out
    assert "arn:aws-us-gov:s3:::frazil-dev-*" in text
    assert "arn:aws:" not in text
