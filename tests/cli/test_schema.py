"""`frazil schema infer`: a schema file of a topic's records, which a declaration takes; an existing file is changed on request only."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from frazil.cli.main import app
from frazil.clients.registry.admin import RegistryAdmin
from frazil.local.services import LocalServices
from frazil.schemas.wire_format import prefixed
from tests.cli.test_topics import fill

FIRST = '{"id": 1, "at": "2026-01-31T10:00:00Z", "price": 1}\n{"id": 2, "price": 2.5}\n'


@pytest.fixture(autouse=True)
def project(folder: Path) -> None:
    (folder / "frazil.toml").write_text('pipelines = "pipelines.py"\n')


def infer(*arguments: str, code: int = 0, stdin: str = "") -> Result:
    ended = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["schema", "infer", *arguments], input=stdin)
    assert ended.exit_code == code, ended.output
    return ended


def from_lines(text: str, *options: str, code: int = 0) -> Result:
    return infer("orders", "--file", "-", *options, code=code, stdin=text)


def test_lines_become_a_schema_file_and_the_printed_declaration_takes_it(folder: Path) -> None:
    shown = from_lines(FIRST).stdout
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines() if line.split()}
    assert rows["at"] == ["date-time", "1", "0", "1"]
    assert rows["price"][0] == "number"
    declared = shown.splitlines()[-1]
    (folder / "pipelines.py").write_text(
        f"from frazil import Json, JsonSchema, Pipeline, Table, Topic\np = {declared}\n"
    )
    checked = CliRunner().invoke(app, ["check"])
    assert checked.exit_code == 0, checked.output
    assert from_lines(FIRST).stdout.count("schemas/orders.json is unchanged") == 1


def test_an_existing_file_is_changed_with_force_only_and_keeps_what_was_not_seen(folder: Path) -> None:
    from_lines(FIRST)
    file = folder / "schemas" / "orders.json"
    before = file.read_text()
    second = '{"id": 3, "note": "x", "price": "free"}\n'
    told = json.loads(from_lines(second, "--json", code=4).stdout)
    assert file.read_text() == before
    assert told["written"] is False
    assert told["added"] == {"note": "string"}
    assert "--force adds the new fields" in from_lines(second, code=4).stdout
    assert "added: note (string)" in from_lines(second, "--force").stdout
    assert list(json.loads(file.read_text())["properties"]) == ["id", "at", "price", "note"]


def test_a_conflict_becomes_json_text_or_is_refused(folder: Path) -> None:
    records = '{"a": 1}\n{"a": "x"}\n{"a": 2}\nnope\n'
    refused = from_lines(records, "--strict", code=2).stderr
    assert "1 fields have no common type: a (2 integer, first stdin:1; 1 string, first stdin:2)" in refused
    assert not (folder / "schemas").exists()
    shown = from_lines(records).stdout
    assert "a becomes JSON text: 2 integer, first stdin:1; 1 string, first stdin:2" in shown
    assert "Not used: stdin:4: this is not JSON" in shown


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--out", "orders.avsc"), "ends in .json"),
        (("--out", "/dev/null/orders.json"), "cannot be"),
        ((), "the values are text, and only json is sampled"),
    ],
)
def test_wrong_input_is_one_error(arguments: tuple[str, ...], why: str) -> None:
    text = FIRST if arguments else "a,b\n"
    assert why in from_lines(text, *arguments, code=2).stderr


@pytest.mark.e2e
def test_a_topic_is_sampled_at_both_ends_and_framed_records_are_refused(
    local_world: LocalServices, folder: Path
) -> None:
    name, framed = f"t{uuid.uuid4().hex}", f"t{uuid.uuid4().hex}"
    schema_id = RegistryAdmin(local_world.registry_url).register(f"{framed}-value", '"long"')
    values: list[dict[str, Any]] = [{"id": n} for n in range(40)]
    values[0]["old"], values[20]["middle"], values[39]["new"] = True, True, "2026-01-31"
    fill(
        local_world.bootstrap,
        {name: [(b"k", json.dumps(value).encode()) for value in values] + [(b"k", None)] * 2},
        partitions=2,
    )
    fill(local_world.bootstrap, {framed: [(None, prefixed(schema_id, b"\x02"))]})
    env = ("--env", str(local_world.environment_file))
    told = json.loads(infer(name, "--records", "8", "--json", *env).stdout)
    assert (told["records"], [field["field"] for field in told["fields"]]) == (6, ["id", "old", "new"])
    assert told["declaration"] == (
        f'Pipeline(topic=Topic("{name}", value=JsonSchema(schema="schemas/{name}.json"), key="text"), '
        f'table=Table("kafka.{name}"))'
    )
    told = json.loads(infer(name, "--json", *env, code=4).stdout)
    assert (told["records"], told["added"]) == (40, {"middle": "boolean"})
    assert 'Declare value="avro"' in infer(framed, *env, code=2).stderr
    assert "the cluster has no such topic" in infer("nope", *env, code=3).stderr
