"""`frazil local produce` on a real broker and registry: what it sends can be read by what it registered."""

from __future__ import annotations

import io
import json
import uuid
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner, Result

from frazil.cli.main import app
from frazil.clients.registry.client import Registry
from frazil.clients.secrets import Secrets
from frazil.declaration.environment import Registry as Settings
from frazil.local.produce import produce as module
from frazil.local.services import LocalServices
from frazil.schemas.avro.schema_fingerprint import head
from frazil.schemas.wire_format import Frame, parse
from tests.support.proto import compiled

pytestmark = pytest.mark.e2e

ORDERS = '{"id": 1, "who": "Ada", "amount": 1.10}\n{"id": 2, "who": "Bob", "amount": 3}\n'


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4().hex}"


@pytest.fixture
def folder(whole_world: LocalServices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's folder is the working folder; files are in the one that is returned."""
    monkeypatch.chdir(whole_world.home.parent)
    monkeypatch.delenv("FRAZIL_PIPELINES", raising=False)
    (tmp_path / "orders.jsonl").write_text(ORDERS)
    return tmp_path


def produce(*arguments: str, stdin: str | None = None, code: int = 0) -> Result:
    ended = CliRunner().invoke(app, ["local", "produce", *arguments], input=stdin)
    assert ended.exit_code == code, ended.output
    return ended


def records(place: LocalServices, topic: str) -> list[tuple[int, bytes | None, bytes]]:
    """The records of a topic: partition, key, value; by partition and offset."""
    consumer = Consumer({"bootstrap.servers": place.bootstrap, "group.id": "t", "enable.partition.eof": True})
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    found, ended = [], 0
    while ended < len(partitions):
        message = consumer.poll(30)
        assert message is not None
        if message.error():
            ended += 1
        else:
            found.append((message.partition(), message.offset(), message.key(), message.value()))
    consumer.close()
    return [(partition, key, value) for partition, _, key, value in sorted(found, key=lambda one: one[:2])]


def schema(place: LocalServices, schema_id: int) -> str:
    found = Registry.of(Settings(url=place.registry_url), Secrets({})).schema(schema_id)
    assert found is not None
    return found.text


@pytest.mark.long
def test_json_is_sent_as_the_file_has_it_and_text_is_a_plain_key(
    whole_world: LocalServices, topic: str, folder: Path
) -> None:
    ended = produce(topic, str(folder / "orders.jsonl"), "--key", "who", "--partitions", "2", "--json")
    told = json.loads(ended.stdout)
    found = records(whole_world, topic)
    assert sorted((key, value) for _, key, value in found) == [
        (b"Ada", b'{"id": 1, "who": "Ada", "amount": 1.10}'),
        (b"Bob", b'{"id": 2, "who": "Bob", "amount": 3}'),
    ]
    counts = {str(p): sum(one == p for one, _, _ in found) for p in {p for p, _, _ in found}}
    assert told == {
        "topic": topic,
        "created": True,
        "format": "json",
        "records": 2,
        "partitions": counts,
        "schemas": {},
    }


def test_avro_is_framed_with_the_inferred_schema_and_a_second_file_adds_to_the_topic(
    whole_world: LocalServices, topic: str, folder: Path
) -> None:
    first = produce(topic, str(folder / "orders.jsonl"), "--format", "avro")
    assert f"produced 2 records to the new topic {topic}, format avro: 2 in partition 0" in first.stdout
    more = '{"id": 3, "who": "Eve", "amount": 0.5, "vip": true}'
    refused = produce(topic, "-", "--format", "avro", stdin=more, code=2)  # the registry's level is BACKWARD
    assert f"subject {topic}-value: the registry refuses the schema (409)" in refused.stderr
    second = produce(topic, "-", "--format", "avro", stdin=more + '\n{"id": 4, "who": "Bob", "amount": 1}')
    assert "produced 2 records to the topic" in second.stdout
    read: list[Any] = []
    for _, key, value in records(whole_world, topic):
        frame = parse(value)
        assert key is None
        assert isinstance(frame, Frame)
        assert frame.schema_id is not None
        parsed = fastavro.parse_schema(json.loads(schema(whole_world, frame.schema_id)))
        read.append(fastavro.schemaless_reader(io.BytesIO(frame.body), parsed, None))
    assert read == [
        {"id": 1, "who": "Ada", "amount": 1.1},
        {"id": 2, "who": "Bob", "amount": 3.0},
        {"id": 3, "who": "Eve", "amount": 0.5, "vip": True},
        {"id": 4, "who": "Bob", "amount": 1.0, "vip": None},
    ]


@pytest.mark.long
def test_the_declaration_gives_format_key_format_and_subject(
    whole_world: LocalServices, topic: str, folder: Path
) -> None:
    file = folder / "pipelines.py"
    file.write_text(
        "from frazil import Avro, Pipeline, Table, Topic\n"
        f"p = Pipeline(topic=Topic({topic!r}, value=Avro(subject_strategy='record', record_name='shop.Order'), key='avro'),\n"
        "             table=Table('shop.orders'))\n"
    )
    of_order = {"type": "record", "name": "shop.Order", "fields": [{"name": "id", "type": "int"}]}
    (folder / "order.avsc").write_text(json.dumps(of_order))
    options = ("--key", "id", "--pipelines", str(file), "--schema", str(folder / "order.avsc"), "--json")
    told = json.loads(produce(topic, "-", *options, stdin='{"id": 7}').stdout)
    assert set(told["schemas"]) == {"shop.Order", f"{topic}-key"}
    ((_, key, value),) = records(whole_world, topic)
    assert key is not None
    frames = [parse(value), parse(key, key=True)]
    assert [isinstance(frame, Frame) and frame.body for frame in frames] == [b"\x0e", b"\x0e"]
    (field,) = json.loads(schema(whole_world, told["schemas"][f"{topic}-key"]))["fields"]
    assert field == {"name": "id", "type": "long"}


@pytest.mark.long
def test_a_declared_schema_file_needs_no_registry_and_no_frame(
    whole_world: LocalServices, topic: str, folder: Path
) -> None:
    text = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]})
    (folder / "order.avsc").write_text(text)
    file = folder / "pipelines.py"
    file.write_text(
        "from frazil import Avro, Pipeline, Table, Topic\n"
        f"p = Pipeline(topic=Topic({topic!r}, value=Avro(schema='order.avsc', framing='single_object')),\n"
        "             table=Table('shop.orders'))\n"
    )
    assert (
        json.loads(produce(topic, "-", "--pipelines", str(file), "--json", stdin='{"id": 7}').stdout)["schemas"] == {}
    )
    assert [value for _, _, value in records(whole_world, topic)] == [head(text) + b"\x0e"]


@pytest.mark.long
def test_protobuf_and_json_schema_are_framed_too(whole_world: LocalServices, topic: str, folder: Path) -> None:
    proto = 'syntax = "proto3"; message Order { int64 id = 1; string who = 2; double amount = 3; }'
    (folder / "order.proto").write_text(proto)
    produce(topic, str(folder / "orders.jsonl"), "--schema", str(folder / "order.proto"))
    (frame, _) = (parse(value, protobuf=True) for _, _, value in records(whole_world, topic))
    assert isinstance(frame, Frame)
    assert (frame.message_index, frame.body) == ((0,), b"\x08\x01\x12\x03Ada\x19\x9a\x99\x99\x99\x99\x99\xf1?")
    assert compiled(schema(whole_world, frame.schema_id or 0)).indexes[(0,)] == "Order"

    produce(f"{topic}-js", str(folder / "orders.jsonl"), "--format", "json_schema")
    (frame, _) = (parse(value) for _, _, value in records(whole_world, f"{topic}-js"))
    assert isinstance(frame, Frame)
    assert frame.body == ORDERS.splitlines()[0].encode()
    assert json.loads(schema(whole_world, frame.schema_id or 0))["properties"]["amount"] == {"type": ["number", "null"]}


@pytest.mark.parametrize(
    ("options", "text", "why"),
    [
        ((), '{"id": 1}\n{"id": 2\n', "stdin:2: this is not JSON"),
        (
            ("--format", "avro"),
            '{"id": 1}\n\n{"id": "x"}',
            "1 fields have no common type: id (1 integer, first stdin:1; 1 string, first stdin:3)",
        ),
        (("--schema", "{}/s.avsc"), '{"id": 1}\n{"id": 2.5}', "stdin:2: R.id is <2.5> of type"),
        (("--schema", "{}/s.json"), '{"id": 1}\n{"id": "x"}', "stdin:2: $.id: 'x' is not of type 'integer'"),
        (("--schema", "{}/s.proto"), '{"id": 1}\n{"id": "x"}', "stdin:2: it is no R: "),
        (("--key", "id"), '{"id": 0.12345678901234567890}', "stdin:1: the field 'id' has a number with more digits"),
        (("--key", "id"), '{"id": 1}\n{"id": null}', "stdin:2: the field 'id', which --key names, is missing or null"),
        (("--key", "id"), '{"id": "\\ud800"}', "stdin:1: the record has half a surrogate pair"),
        (
            (),
            '{"id": 1}\n{"id": "123456789012345678901234567890"}',
            "stdin:2: the record has 40 bytes; the broker takes 30",
        ),
        ((), "\n", "there is no record"),
        (("--format", "protobuf"), '{"id": 1}', "a Protobuf schema cannot be inferred. Give --schema FILE.proto"),
        (
            ("--format", "xml"),
            '{"id": 1}',
            "records of format xml are not produced. Give --format json, json_schema, avro or protobuf",
        ),
        (("--format", "avro", "--schema", "{}/s.json"), '{"id": 1}', "the file's ending is of no schema of the format"),
        (("--schema", "{}/none.avsc"), '{"id": 1}', "it cannot be read ("),
        (("--schema", "{}/remote.json"), '{"id": 1}', "which it does not have"),
    ],
)
def test_a_wrong_record_or_schema_is_one_error_and_nothing_is_produced(
    whole_world: LocalServices,
    topic: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    text: str,
    why: str,
) -> None:
    monkeypatch.setattr(module, "LARGEST_RECORD_BYTES", 30)
    (folder / "s.avsc").write_text('{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}')
    (folder / "s.json").write_text('{"type": "object", "properties": {"id": {"type": "integer"}}}')
    (folder / "remote.json").write_text(
        '{"type": "object", "properties": {"id": {"$ref": "http://127.0.0.1:9/x.json"}}}'
    )
    (folder / "s.proto").write_text('syntax = "proto3"; message R { int64 id = 1; }')
    ended = produce(topic, "-", *(option.format(folder) for option in options), stdin=text, code=2)
    assert why in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert topic not in AdminClient({"bootstrap.servers": whole_world.bootstrap}).list_topics(timeout=30).topics
    assert not [
        name for name in Registry.of(Settings(url=whole_world.registry_url), Secrets({})).subjects() if topic in name
    ]


def test_a_schema_without_a_name_has_no_subject_by_record_names(whole_world: LocalServices, folder: Path) -> None:
    value = "Avro(subject_strategy='topic_record')"
    (folder / "p.py").write_text(
        f"from frazil import *\np = Pipeline(topic=Topic('nameless', value={value}), table=Table('shop.nameless'))\n"
    )
    (folder / "s.avsc").write_text('{"type": "map", "values": "long"}')
    options = ("--pipelines", str(folder / "p.py"), "--schema", str(folder / "s.avsc"))
    ended = produce("nameless", "-", *options, stdin='{"id": 1}', code=2)
    assert "Give a record with a name, or a JSON Schema with a title" in ended.stderr
    assert "nameless" not in AdminClient({"bootstrap.servers": whole_world.bootstrap}).list_topics(timeout=30).topics


@pytest.mark.usefixtures("folder")
def test_a_name_that_kafka_refuses_registers_nothing(whole_world: LocalServices) -> None:
    ended = produce("no name", "-", "--format", "avro", stdin='{"id": 1}', code=2)
    assert "topic no name: Topic name is invalid" in ended.stderr
    assert "no name-value" not in Registry.of(Settings(url=whole_world.registry_url), Secrets({})).subjects()


@pytest.mark.usefixtures("folder")
def test_the_partitions_of_a_topic_that_exists_stay(topic: str) -> None:
    produce(topic, "-", stdin='{"id": 1}')
    ended = produce(topic, "-", "--partitions", "3", stdin='{"id": 1}\n{"id": 2}')
    assert f"produced 2 records to the topic {topic}, format json: 2 in partition 0" in ended.stdout


def test_another_environment_is_refused_and_so_is_a_folder_without_a_broker(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert "No such option: --env" in produce("t", "orders.jsonl", "--env", "prod", code=2).stderr
    assert "Start it: `frazil local up`" in produce("t", "orders.jsonl", code=3).stderr
