"""`frazil schema topics` on a real broker: what topics hold, and a line that declares one."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner, Result

import frazil
from frazil.cli.main import app
from frazil.clients.registry.admin import RegistryAdmin
from frazil.declaration import Pipeline
from frazil.declaration.documents.document import environment_document
from frazil.local.services import LocalServices, Part, world
from frazil.schemas.wire_format import prefixed
from tests.support.documents import environment_in

pytestmark = pytest.mark.e2e


@pytest.fixture
def place(local_world: LocalServices, folder: Path) -> LocalServices:
    return local_world


def topics(place: LocalServices, *arguments: str, code: int = 0) -> Result:
    options = ("--env", str(place.environment_file))
    ended = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["schema", "topics", *arguments, *options])
    assert ended.exit_code == code, ended.output
    return ended


def fill(bootstrap: str, records: dict[str, list[tuple[bytes | None, bytes | None]]], *, partitions: int = 1) -> None:
    settings = {"bootstrap.servers": bootstrap, "log_level": 0}
    admin = AdminClient(settings)
    for made in admin.create_topics([NewTopic(name, partitions, 1) for name in records]).values():
        made.result()
    producer = Producer(settings)
    for name, pairs in records.items():
        for number, (key, value) in enumerate(pairs):
            producer.produce(name, value, key, partition=number % partitions)
    assert producer.flush(30) == 0


def test_topics_are_listed_with_what_they_hold_and_who_reads_them(place: LocalServices, tmp_path: Path) -> None:
    name = f"t{uuid.uuid4().hex}"
    schema_id = RegistryAdmin(place.registry_url).register(f"{name}-value", '"long"')
    records: dict[str, list[tuple[bytes | None, bytes | None]]] = {
        f"{name}.a": [(b"k", prefixed(schema_id, b"\x02"))] * 8,
        f"{name}.b": [(None, b'{"a": 1}'), (b"\xff", None)],
        f"_{name}": [],
    }
    fill(place.bootstrap, records, partitions=2)
    file = tmp_path / "pipelines.py"
    file.write_text(
        "from frazil import Json, Pipeline, Table, Topic\n"
        f"p = Pipeline(name='reader', topic=Topic('{name}.a', value='avro'), table=Table('shop.a'))\n"
    )
    told = json.loads(topics(place, "--json", "--all", "--pipelines", str(file)).stdout)
    mine: dict[str, Any] = {one["topic"]: one for one in told["topics"] if name in one["topic"]}
    assert mine[f"{name}.a"] == {
        "topic": f"{name}.a",
        "partitions": 2,
        "records": 8,
        "value_format_guess": "avro",
        "key_format_guess": "text",
        "sampled_records": 6,
        "pipelines": ["reader"],
        "tables": ["shop.a"],
    }
    formats = {topic: (one["value_format_guess"], one["key_format_guess"]) for topic, one in mine.items()}
    assert formats[f"{name}.b"] == ("json", "bytes")
    assert formats[f"_{name}"] == (None, None)
    shown = topics(place).stdout
    assert f"_{name}" not in shown
    (line,) = (line for line in shown.splitlines() if line.startswith(f"{name}.a"))
    assert line.split() == [f"{name}.a", "2", "8", "avro", "text", "–"]

    one = topics(place, f"{name}.a").stdout
    declared = eval(one.splitlines()[-1], dict(vars(frazil)))
    assert isinstance(declared, Pipeline)
    assert (declared.topic.name, declared.topic.value.kind, declared.topic.key.kind) == (
        f"{name}.a",
        "avro",
        "text",
    )
    assert "the cluster has no such topic" in topics(place, "nope", code=3).stderr
    json_line = topics(place, f"{name}.b").stdout.splitlines()[-1]
    assert 'columns=("a long",)' in json_line, "declared without columns, JSON lands as one text"
    assert f'Table("{name}.b")' in json_line, "the namespace is the topic's own prefix"


def test_without_its_registry_a_frame_is_a_frame_and_it_is_said(place: LocalServices, tmp_path: Path) -> None:
    name = f"t{uuid.uuid4().hex}"
    fill(place.bootstrap, {name: [(None, prefixed(1, b"\x02"))]})
    document = json.loads(place.environment_file.read_text())
    document["registry"]["url"] = "http://127.0.0.1:9"
    (tmp_path / "dev.json").write_text(json.dumps({**document, "name": "dev"}))
    ended = CliRunner().invoke(app, ["schema", "topics", name, "--json", "--env", "./dev.json"])
    told = json.loads(ended.stdout)
    assert told["topics"][0]["value_format_guess"] == "framed"
    assert told["note"].startswith("Formats of frames are unknown: registry")
    assert 'value="bytes"' in told["topics"][0]["declaration"]


def test_a_broker_that_does_not_run_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "dev.json").write_text(json.dumps(environment_document(environment_in(tmp_path))))
    ended = CliRunner().invoke(app, ["schema", "topics", "--env", str(tmp_path / "dev.json")])
    assert ended.exit_code == 3
    assert "The local broker 127.0.0.1:9 does not run" in ended.stderr


@pytest.mark.long
def test_two_hundred_topics_are_listed_within_five_seconds(folder: Path) -> None:
    with world(folder, parts=(Part.KAFKA,)) as place:
        fill(place.bootstrap, {f"t{n}": [(b"k", b'{"a": 1}')] * 6 for n in range(200)}, partitions=3)
        began = time.monotonic()
        told = json.loads(topics(place, "--json").stdout)
        assert time.monotonic() - began < 5
    assert {one["value_format_guess"] for one in told["topics"]} == {"json"}
    assert len(told["topics"]) == 200
