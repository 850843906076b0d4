"""`frazil dead-letters` on a real table: what it answers, how it ends, and that records cannot act on the terminal."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.declaration.environment import Environment
from frazil.local.services import LocalServices
from tests.cli.test_console import is_inert
from tests.support.dead_letter_shop import HOSTILE, with_letters
from tests.support.documents import written
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
Ask = Callable[..., Result]


@pytest.fixture(scope="module")
def letters(local_world: LocalServices, spark: SparkSession, lake_environment: Environment) -> Shop:
    return with_letters(local_world, spark, lake_environment, f"t{uuid.uuid4().hex[:10]}")


@pytest.fixture
def ask(letters: Shop, tmp_path: Path) -> Ask:
    """Runs `frazil dead-letters COMMAND PIPELINE …`."""
    options = written(tmp_path, [letters.pipeline], letters.environment)

    def run(command: str, *more: object) -> Result:
        return CliRunner().invoke(app, ["dead-letters", command, letters.pipeline.name, *map(str, more), *options])

    return run


def words(told: str) -> list[list[str]]:
    return [line.split() for line in told.splitlines() if line]


def test_the_list_counts_by_reason_and_tells_places(ask: Ask) -> None:
    ended = ask("list")
    assert ended.exit_code == 0, ended.stderr
    told = words(ended.stdout)
    assert ["undecodable", "2"] in told
    listed = [row[:5] for row in told]
    assert ["0:4", "2027-01-15", "09:00:00", "unknown_schema", "2000000000"] in listed
    assert ["1:3", "2027-01-15", "08:00:00", "tombstone", "–"] in listed


@pytest.mark.parametrize(
    ("filters", "places"),
    [
        (["--reason", "undecodable"], [(0, 5), (1, 2)]),
        (["--partition", 0, "--limit", 1], [(0, 5)]),
        (["--since", "2027-01-15T08:30:00"], [(0, 5), (0, 4)]),
        (["--until", "2027-01-15 08:30:00", "--reason", "tombstone"], [(1, 3)]),
        (["--since", "2027-01-16"], []),
    ],
)
def test_the_list_can_be_filtered(ask: Ask, filters: list[Any], places: list[tuple[int, int]]) -> None:
    ended = ask("list", *filters, "--json")
    assert ended.exit_code == 0, ended.stderr
    letters = json.loads(ended.stdout)["letters"]
    assert [(one["partition"], one["offset"]) for one in letters] == places


def test_the_list_says_how_many_more_there_are(ask: Ask) -> None:
    assert ask("list", "--limit", 2).stdout.splitlines()[-1] == "… and 4 more"


def test_an_empty_list_is_a_good_end(ask: Ask, letters: Shop) -> None:
    ended = ask("list", "--reason", "before_missing")
    assert ended.exit_code == 0
    assert ended.stdout == f"{letters.pipeline.table.dead_letters}: no dead letters\n"


def test_a_wrong_reason_is_wrong_input(ask: Ask) -> None:
    ended = ask("list", "--reason", "undecodeable")
    assert ended.exit_code == 2
    assert "there is no reason 'undecodeable'. Did you mean undecodable?" in ended.stderr


def test_the_list_has_key_and_message(ask: Ask) -> None:
    told = ask("list").stdout
    assert "the value does not match its schema or format" in told
    assert json.loads(ask("list", "--json").stdout)["letters"][0].keys() >= {"key", "message"}


def test_one_is_shown_with_where_decoding_goes_wrong_and_its_bytes(ask: Ask, letters: Shop) -> None:
    ended = ask("show", "0:5")
    assert ended.exit_code == 0, ended.stderr
    told = ended.stdout.splitlines()
    assert told[0] == f"{letters.topic}, partition 0, offset 5"
    assert told[1] == "undecodable: the value does not match its schema or format"
    assert "no key" in told
    value = letters.journal[0, 5]
    assert value is not None
    (at,) = (number for number, line in enumerate(told) if line == f"value, {len(value)} bytes")
    assert f"{letters.topic}-value" in told[at + 1]
    assert told[at + 2].startswith("decoded once more: a length of -5 at byte 27, field tags{")
    hexes = "".join("".join(line[10:49].split()) for line in told[at + 3 :])
    assert bytes.fromhex(hexes) == value


def test_a_record_cannot_act_on_the_terminal(ask: Ask, letters: Shop) -> None:
    for place in ("0:5", "1:0", "1:1"):
        for more in ([], ["--json"]):
            ended = ask("show", place, *more)
            assert ended.exit_code == 0, ended.stderr
            assert is_inert(ended.output)
    assert r"header \x1b]0;owned\x07\x1b[2J\u202e" in ask("show", "1:0").stdout
    assert HOSTILE in json.loads(ask("show", "0:5", "--json").stdout)["value"]["attempt"]["path"]


def test_what_is_no_dead_letter_is_told_on_one_line(ask: Ask) -> None:
    for place, said in (("0:0", "there is no dead letter of partition 0, offset 0"), ("0", "'0' is no place")):
        ended = ask("show", place)
        assert (ended.exit_code, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
        assert said in ended.stderr
