"""Which schemas a topic's records may have, by what the registry says before and after they are met."""

from __future__ import annotations

import itertools
import json
import uuid
from random import Random
from typing import Any

import pytest

from frazil.clients.registry.client import Registry
from frazil.clients.registry.schemas import SchemaType
from frazil.clients.secrets import Secrets
from frazil.declaration import Debezium, Protobuf, SubjectStrategy, Topic
from frazil.declaration.environment import Registry as RegistrySettings
from frazil.decode.decoded_columns import schema_id_of
from frazil.decode.frames.framed import Registered
from frazil.decode.writers.seen_frames import MOST, SeenFrames
from frazil.decode.writers.topic_writers import writer_schemas
from frazil.decode.writers.writer_schemas import NEWEST, TooMany, WriterSchemas
from frazil.envelopes.debezium import DebeziumEvents
from frazil.errors import InvalidInput, RegistryUnavailable
from frazil.schemas import avro
from frazil.schemas.evolution.table_mapping import landing
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Field, Kind, Primitive, Struct
from frazil.schemas.wire_format import guid_header, prefixed
from tests.support.fake_registry import FakeRegistry
from tests.support.registry_server import RegistryServer
from tests.support.topics import topic_of

ORDER = {"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "id", "type": "int"}]}
LATER = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string"}]}
PROTO = (
    'syntax = "proto3"; package shop; message Order { int32 id = 1; message Line { string sku = 1; } } message Empty {}'
)


def writers(registry: FakeRegistry | Registry, value_format: str = "avro", **declared: Any) -> WriterSchemas:
    keys = declared.pop("keys", False)
    return writer_schemas(topic_of("orders", value_format=value_format, **declared), registry, keys=keys)  # type: ignore[arg-type]


def decoder(of: WriterSchemas) -> Registered:
    made = of.decoder(landing(Struct(()), of.versions).target, {})
    assert isinstance(made, Registered)
    return made


def meet(of: WriterSchemas, *frames: bytes) -> bool:
    return of.learn(SeenFrames(unknown=frames))


def frame(schema_id: int, *path: int) -> bytes:
    return prefixed(schema_id, b"", path or None)


KEYS = (
    'syntax = "proto3"; package shop; message Order { int32 id = 1; } message Key { int32 id = 1; } '
    "message Other { int32 id = 1; }"
)


@pytest.mark.parametrize(("record_name", "of"), [(None, 0), ("shop.Key", 1), ("shop.Other", 2)])
def test_keys_that_name_rows_are_of_one_message(record_name: str | None, of: int) -> None:
    """Keys of two messages with the same fields are two keys. Without a name it is the first message of the oldest version."""
    registry = FakeRegistry()
    first = registry.register("orders-key", KEYS, SchemaType.PROTOBUF)
    later = registry.register("orders-key", f"{KEYS} message More {{}}", SchemaType.PROTOBUF)
    topic = Topic("orders", value="avro", key=Protobuf(record_name=record_name))
    found = writer_schemas(topic, registry, keys=True, of_one_type=True)  # type: ignore[arg-type]
    found.refresh()
    meet(found, *(frame(number, path) for number in (first, later) for path in range(3)))
    how = decoder(found)
    assert how.frames.keys() >= {frame(first, of), frame(later, of)}
    others = {frame(number, path) for number in (first, later) for path in range(3) if path != of}
    assert {how.refused[each] for each in others} == {Reason.FOREIGN_SCHEMA}


def test_keys_that_name_no_rows_are_of_any_message() -> None:
    registry = FakeRegistry()
    number = registry.register("orders-key", KEYS, SchemaType.PROTOBUF)
    found = writers(registry, key_format="protobuf", keys=True)
    found.refresh()
    meet(found, *(frame(number, path) for path in range(3)))
    assert decoder(found).frames.keys() >= {frame(number, path) for path in range(3)}


@pytest.mark.parametrize("value_format", ["text", "bytes", "json"])
def test_a_format_without_a_registry_has_one_column(value_format: str) -> None:
    ((_, row),) = writer_schemas(Topic("orders", value=value_format), None).versions
    assert [field.name for field in row.fields] == ["value"]


def test_versions_are_known_before_a_record_has_them_by_id_and_by_guid() -> None:
    registry = FakeRegistry()
    schema_id = registry.register("orders-value", json.dumps(ORDER))
    found = writers(registry)
    assert found.refresh()
    assert not found.refresh()
    assert decoder(found).frames == {
        frame(schema_id): schema_id,
        guid_header(registry.store.guid(schema_id)): schema_id,
    }
    assert decoder(found).schema_ids == (schema_id,)


def test_what_the_registry_does_not_have_is_unknown_until_it_has() -> None:
    registry = FakeRegistry()
    registry.register("orders-value", json.dumps(ORDER))
    found = writers(registry)
    found.refresh()
    late = len(registry.store.schemas) + 1
    assert not meet(found, frame(late))  # the reason that its records have without a verdict is right
    assert not {frame(late)} & {*decoder(found).frames, *decoder(found).refused}
    assert registry.register("orders-value", json.dumps(LATER)) == late
    assert meet(found, frame(late))
    assert frame(late) in decoder(found).frames


def test_another_subjects_schema_is_foreign_until_ours_has_it_too() -> None:
    registry = FakeRegistry()
    schema_id = registry.register("elsewhere", json.dumps(ORDER))
    found = writers(registry)
    for one in (frame(schema_id), guid_header(registry.store.guid(schema_id))):
        meet(found, one)
        assert decoder(found).refused[one] is Reason.FOREIGN_SCHEMA
    registry.register("orders-value", json.dumps(ORDER))
    assert found.refresh()
    assert decoder(found).refused == {}


def test_an_outage_is_no_verdict() -> None:
    registry = FakeRegistry()
    found = writers(registry)
    registry.down = True
    for one in (frame(5), guid_header(str(uuid.uuid4()))):
        with pytest.raises(RegistryUnavailable):
            meet(found, one)
    assert decoder(found).refused == {}


@pytest.mark.parametrize("error", [TypeError("unhashable type"), RecursionError()])
def test_a_schema_at_which_reading_fails_is_refused_and_ends_no_topic(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    registry = FakeRegistry()
    good = registry.register("orders-value", json.dumps(ORDER))
    bad = registry.register("orders-value", json.dumps(LATER))
    parse = avro.parse

    def failing(text: str, *rest: Any, **more: Any) -> Any:
        if "note" in text:
            raise error
        return parse(text, *rest, **more)

    monkeypatch.setattr("frazil.schemas.avro.parse", failing)
    found = writers(registry)
    assert found.refresh()
    assert decoder(found).refused[frame(bad)] is Reason.UNREADABLE_SCHEMA
    assert found.problems[bad].startswith(type(error).__name__)
    assert frame(good) in decoder(found).frames


JSON_ORDER = json.dumps({"type": "object", "properties": {"id": {"type": "integer"}}})
PROTO_ORDER = 'syntax = "proto3"; message Order { int32 id = 1; }'
GROUP = 'syntax = "proto2"; message Order { optional group Line = 1 { optional int32 id = 1; } }'
OF_FORMATS = {
    "avro": (SchemaType.AVRO, json.dumps(ORDER)),
    "json_schema": (SchemaType.JSON, JSON_ORDER),
    "protobuf": (SchemaType.PROTOBUF, PROTO_ORDER),
}
UNREAD = [
    ("avro", SchemaType.AVRO, "{", "not JSON"),
    ("avro", SchemaType.JSON, JSON_ORDER, "it is in json"),
    ("avro", SchemaType.AVRO, json.dumps({**ORDER, "fields": [{"name": "a", "type": "shop.Gone"}]}), "Gone"),
    ("json_schema", SchemaType.AVRO, json.dumps(ORDER), "it is in avro"),
    ("json_schema", SchemaType.JSON, json.dumps({"$ref": "gone.json"}), "gone.json"),
    ("json_schema", SchemaType.JSON, "[" * 100_000, ""),
    ("protobuf", SchemaType.PROTOBUF, GROUP, "Order.line: a group"),
    ("protobuf", SchemaType.PROTOBUF, 'syntax = "proto3"; import "gone.proto"; message M {}', "gone.proto"),
    ("protobuf", SchemaType.PROTOBUF, 'syntax = "proto3"; message Beat {}', "Beat: the message has no fields"),
    ("protobuf", SchemaType.AVRO, json.dumps(ORDER), "it is in avro"),
]


@pytest.mark.parametrize(("keys", "is_first"), [(False, True), (True, False)], ids=["values", "keys"])
@pytest.mark.parametrize(("value_format", "kind", "text", "why"), UNREAD)
def test_one_version_holds_up_no_topic(
    value_format: str, kind: SchemaType, text: str, why: str, *, keys: bool, is_first: bool
) -> None:
    """Its records are dead letters that name its id, and the problem names its field; others land."""
    registry, subject = FakeRegistry(), f"orders-{'key' if keys else 'value'}"
    good_kind, good_text = OF_FORMATS[value_format]
    pairs = [(text, kind), (good_text, good_kind)]
    ids = [registry.register(subject, *pair) for pair in (pairs if is_first else reversed(pairs))]
    bad, good = ids if is_first else reversed(ids)
    found = writers(
        registry, **({"key_format": value_format, "keys": True} if keys else {"value_format": value_format})
    )
    found.refresh()
    path = (0,) if value_format == "protobuf" else ()
    meet(found, frame(bad, *path), frame(good, *path), frame(9_999, *path))
    how = decoder(found)
    assert frame(good, *path) in how.frames
    assert how.refused[frame(bad, *path)] is Reason.UNREADABLE_SCHEMA
    assert why in found.problems[bad]
    assert set(found.problems) == {bad}


@pytest.mark.parametrize("value_format", OF_FORMATS)
def test_a_softly_deleted_version_lands_and_one_that_is_gone_is_unknown(value_format: str) -> None:
    registry = FakeRegistry()
    kind, text = OF_FORMATS[value_format]
    schema_id = registry.register("orders-value", text, kind)
    path = (0,) if value_format == "protobuf" else ()
    registry.delete_subject("orders-value")
    found = writers(registry, value_format)
    found.refresh()
    assert frame(schema_id, *path) in decoder(found).frames
    registry.delete_subject("orders-value", permanent=True)
    found = writers(registry, value_format)
    found.refresh()
    assert not meet(found, frame(schema_id + 7, *path))
    assert frame(schema_id + 7, *path) not in {**decoder(found).frames, **decoder(found).refused}


def test_a_first_message_that_makes_no_columns_does_not_hide_the_others() -> None:
    """Records name them; none is known at once."""
    registry = FakeRegistry()
    text = 'syntax = "proto3"; package shop; message Empty {} message Order { int32 id = 1; }'
    schema_id = registry.register("orders-value", text, SchemaType.PROTOBUF)
    found = writers(registry, "protobuf")
    assert not found.refresh()
    assert found.may_begin_without
    assert meet(found, frame(schema_id, 1))
    assert [row.fields[0].name for _, row in found.versions] == ["id"]
    assert decoder(found).refused[frame(schema_id, 0)] is Reason.UNREADABLE_SCHEMA
    assert "no fields" in found.problems[schema_id]


def test_a_version_that_the_envelope_cannot_unwrap_stops_nothing_if_another_one_can() -> None:
    registry = FakeRegistry()
    envelope = DebeziumEvents(Debezium(operation_column=True))
    ours = writer_schemas(Topic("orders", value="avro"), registry, envelope=envelope)  # type: ignore[arg-type]
    first = registry.register("orders-value", json.dumps(ORDER))
    with pytest.raises(InvalidInput, match="flattened events do not have"):
        ours.refresh()
    marked = {**ORDER, "fields": [*ORDER["fields"], {"name": "__op", "type": "string"}]}
    second = registry.register("orders-value", json.dumps(marked))
    assert ours.refresh()
    assert [schema_id_of(number) for number, _ in ours.versions] == [second]
    assert "add.fields" in ours.problems[first]


def test_keys_have_a_subject_and_a_format_of_their_own() -> None:
    registry = FakeRegistry()
    registry.register("orders-value", json.dumps(ORDER))
    key = registry.register("orders-key", '"long"')
    found = writers(registry, "json_schema", key_format="avro", keys=True)
    found.refresh()
    assert [number for number, _ in found.versions] == [key]
    assert found.types[key].is_single_value


def test_a_message_type_becomes_a_writer_when_a_record_names_it() -> None:
    registry = FakeRegistry()
    schema_id = registry.register("orders-value", PROTO, SchemaType.PROTOBUF)
    found = writers(registry, "protobuf")
    found.refresh()
    assert [row.fields[0].name for _, row in found.versions] == ["id"]
    meet(found, frame(schema_id, 0, 0))
    assert [row.fields[0].name for _, row in found.versions] == ["id", "sku"]
    assert {schema_id_of(number) for number, _ in found.versions} == {schema_id}
    assert len({number for number, _ in found.versions}) == 2
    refused = {frame(schema_id, 9): Reason.BAD_MESSAGE_INDEX, frame(schema_id, 1): Reason.UNREADABLE_SCHEMA}
    for one in refused:
        meet(found, one)
    assert decoder(found).refused == refused


def test_frames_of_one_type_in_several_spellings_are_one_writer() -> None:
    registry = FakeRegistry()
    schema_id = registry.register("orders-value", PROTO, SchemaType.PROTOBUF)
    found = writers(registry, "protobuf")
    found.refresh()
    meet(found, frame(schema_id) + b"\x80\x00")
    assert set(decoder(found).frames.values()) == {schema_id}
    guid = guid_header(registry.store.guid(schema_id))
    heads = (frame(schema_id), guid)
    assert set(decoder(found).frames) == {h + i for h in heads for i in (b"\0", b"\x02\0")} | {heads[0] + b"\x80\x00"}


def spellings(schema_id: int) -> list[bytes]:
    """All frames that name the message `Order.Line`: its path (0, 0), each number in one to five bytes."""
    padded = [[bytes([n])] + [bytes([n | 0x80]) + b"\x80" * more + b"\0" for more in range(4)] for n in (4, 0, 0)]
    return [frame(schema_id) + b"".join(index) for index in itertools.product(*padded)]


def test_of_many_spellings_of_one_type_the_newest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frazil.decode.writers.registered_messages.MOST", 10)
    registry = FakeRegistry()
    schema_id = registry.register("orders-value", PROTO, SchemaType.PROTOBUF)
    found = writers(registry, "protobuf")
    found.refresh()
    usual, *padded = spellings(schema_id)
    assert len(padded) == 124
    assert meet(found, usual)
    known = set(decoder(found).frames)
    for first in range(0, len(padded), 10):
        assert meet(found, *padded[first : first + 10])
    assert set(decoder(found).frames) == {*known, *padded[-10:]}
    assert len(found.versions) == 2
    assert not decoder(found).waiting
    assert meet(found, padded[0])  # one that was forgotten is found again
    assert padded[0] in decoder(found).frames


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 20))])
def test_a_batch_of_no_more_spellings_than_are_remembered_is_decoded_in_the_end(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("frazil.decode.writers.registered_messages.MOST", 10)
    registry, random = FakeRegistry(), Random(seed)
    schema_id = registry.register("orders-value", PROTO, SchemaType.PROTOBUF)
    found = writers(registry, "protobuf")
    found.refresh()
    frames = spellings(schema_id)
    for _ in range(20):
        batch = random.sample(frames, 10)
        for _ in range(4):
            unknown = [one for one in batch if one not in decoder(found).frames]
            if not unknown:
                break
            assert meet(found, *unknown)
        assert set(batch) <= set(decoder(found).frames)


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [(SubjectStrategy.RECORD, "shop.Order"), (SubjectStrategy.TOPIC_RECORD, "orders-shop.Order")],
)
def test_the_declared_records_subject_is_known_before_a_record_is(strategy: SubjectStrategy, subject: str) -> None:
    registry = FakeRegistry()
    schema_id = registry.register(subject, json.dumps(ORDER))
    found = writers(registry, subject_strategy=strategy, record_name="shop.Order")
    assert found.refresh()
    assert not found.may_begin_without
    other = registry.register(subject.replace("Order", "Refund"), json.dumps({**ORDER, "name": "Refund"}))
    meet(found, frame(other))
    assert decoder(found).refused == {frame(other): Reason.FOREIGN_SCHEMA}
    assert [number for number, _ in found.versions] == [schema_id]


def test_a_subject_that_only_begins_like_ours_is_another_topics() -> None:
    registry = FakeRegistry()
    registry.register("orders-shop.Order", json.dumps(ORDER))
    registry.register("orders-eu-shop.Refund", json.dumps({**ORDER, "name": "Refund"}))
    found = writers(registry, subject_strategy=SubjectStrategy.TOPIC_RECORD)
    found.refresh()
    assert len(found.versions) == 1


@pytest.mark.parametrize(
    ("value_format", "text"),
    [
        *(("avro", text) for text in ('"string"', '{"type": "array", "items": "long"}', '["null", "string"]')),
        ("json_schema", '{"type": "object", "properties": {"value": {"type": "string"}}}'),
    ],
)
@pytest.mark.parametrize("subject", ["orders-key", "orders-eu-value"])
def test_a_schema_without_a_name_makes_no_columns_by_the_names_of_records(
    value_format: str, text: str, subject: str
) -> None:
    registry = FakeRegistry()
    kind = SchemaType.AVRO if value_format == "avro" else SchemaType.JSON
    schema_id = registry.register(subject, text, kind)
    found = writers(registry, value_format, subject_strategy=SubjectStrategy.TOPIC_RECORD)
    found.refresh()
    meet(found, frame(schema_id))
    assert (found.versions, found.problems) == ((), {})
    assert decoder(found).refused[frame(schema_id)] is Reason.FOREIGN_SCHEMA
    assert registry.register("orders-shop.Order", text, kind) == schema_id
    declared = writers(registry, value_format, subject_strategy=SubjectStrategy.TOPIC_RECORD, record_name="shop.Order")
    assert declared.refresh()  # the subject is that of the declared name


def test_change_data_waits_while_only_keys_have_a_subject() -> None:
    registry = FakeRegistry()
    schema_id = registry.register("orders-key", json.dumps({**ORDER, "name": "Key"}))
    topic = topic_of("orders", value_format="avro", subject_strategy=SubjectStrategy.TOPIC_RECORD)
    envelope = DebeziumEvents(Debezium(operation_column=True))
    found = writer_schemas(topic, registry, envelope=envelope)
    assert not found.refresh()
    assert decoder(found).refused[frame(schema_id)] is Reason.FOREIGN_SCHEMA


def test_without_a_name_and_a_topic_in_it_a_run_begins_without_versions() -> None:
    registry = FakeRegistry()
    schema_id = registry.register("shop.Order", json.dumps(ORDER))
    found = writers(registry, subject_strategy=SubjectStrategy.RECORD)
    assert found.may_begin_without
    assert not found.refresh()
    meet(found, frame(schema_id))
    assert [number for number, _ in found.versions] == [schema_id]


# ── Many frames, many versions ──────────────────────────────────────────────────────────────────
def version(number: int) -> str:
    return json.dumps({**ORDER, "fields": [*ORDER["fields"], {"name": f"n{number}", "type": "string"}]})


def test_a_batch_of_unknown_ids_is_one_question_an_id_and_one_for_the_versions() -> None:
    with RegistryServer() as server:
        server.store.register("orders-value", json.dumps(ORDER))
        found = writers(Registry.of(RegistrySettings(url=server.url), Secrets({})))
        found.refresh()
        asked = len(server.requests)
        assert not meet(found, *(frame(100 + number) for number in range(MOST)))
        assert len(server.requests) - asked == MOST + 2
        assert len([path for path in server.requests[asked:] if "/subjects/" in path]) == 2
        assert not meet(found, *(frame(100 + number) for number in range(MOST)))
        assert len(server.requests) - asked == MOST + 4  # that they are strangers is remembered
        assert server.connections <= 16


def test_more_ids_than_are_listed_are_unknown_unless_the_topics_versions_have_them() -> None:
    registry = FakeRegistry()
    registry.register("orders-value", json.dumps(ORDER))
    found = writers(registry)
    found.refresh()
    registry.asked.clear()
    assert not found.learn(SeenFrames(unknown=(frame(7),), is_all=False))
    assert registry.asked == ["versions"]
    late = registry.register("orders-value", json.dumps(LATER))
    assert found.learn(SeenFrames(unknown=(frame(7),), is_all=False))
    assert "subjects_of" not in registry.asked
    assert late in decoder(found).schema_ids


@pytest.mark.parametrize(
    ("value_format", "declared", "has_guids"),
    [
        ("protobuf", {}, False),
        ("avro", {"subject_strategy": SubjectStrategy.RECORD}, False),
        ("avro", {"subject_strategy": SubjectStrategy.TOPIC_RECORD}, False),
        ("avro", {}, True),
    ],
)
def test_where_only_asking_tells_whose_a_frame_is_too_many_frames_are_refused(
    value_format: str, declared: dict[str, Any], has_guids: bool
) -> None:
    found = writers(FakeRegistry(), value_format, **declared)
    with pytest.raises(TooMany):
        found.learn(SeenFrames(unknown=(frame(7),), is_all=False, has_guids=has_guids))


def test_verdicts_on_what_is_not_the_topics_are_forgotten_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frazil.decode.writers.registered_writers.MOST", 10)
    registry = FakeRegistry()
    foreign = [registry.register("elsewhere", version(number)) for number in range(60)]
    found = writers(registry)
    for first in range(0, len(foreign), 10):
        assert meet(found, *map(frame, foreign[first : first + 10]))
    assert set(decoder(found).refused) == set(map(frame, foreign[-40:]))
    assert meet(found, frame(foreign[0]))
    assert decoder(found).refused[frame(foreign[0])] is Reason.FOREIGN_SCHEMA


def test_an_outage_while_a_version_is_read_does_not_make_it_unknown() -> None:
    registry = FakeRegistry()
    found = writers(registry)
    schema_id = registry.register("orders-value", json.dumps(ORDER))
    registry.fails_at = "schema"
    with pytest.raises(RegistryUnavailable):
        found.refresh()
    registry.fails_at = ""
    assert meet(found, frame(schema_id))
    assert frame(schema_id) in decoder(found).frames


def test_only_the_newest_versions_and_those_that_were_met_have_a_decoder() -> None:
    registry = FakeRegistry()
    ids = [registry.register("orders-value", version(number)) for number in range(30)]
    found = writers(registry)
    found.refresh()
    assert decoder(found).schema_ids == tuple(ids[-NEWEST:])
    assert {frame(schema_id) for schema_id in ids[:-NEWEST]} <= set(decoder(found).waiting)
    registry.down = True  # and yet
    assert found.learn(SeenFrames(waiting=(frame(ids[3]), frame(ids[7]))))
    assert decoder(found).schema_ids == (ids[3], ids[7], *ids[-NEWEST:])
    assert not found.learn(SeenFrames(waiting=(frame(9_999),)))
    assert not {frame(ids[3]), frame(ids[7])} & set(decoder(found).waiting)
    assert not found.forget()  # so few cost nothing
    assert found.learn(SeenFrames(waiting=tuple(map(frame, ids[:20]))))
    assert found.forget()
    assert decoder(found).schema_ids == tuple(ids[-NEWEST:])


def test_what_an_earlier_run_decoded_is_decoded_from_the_start_if_it_is_little() -> None:
    registry = FakeRegistry()
    ids = [registry.register("orders-value", version(number)) for number in range(30)]
    found = writers(registry)
    found.refresh()
    found.recall(ids)
    assert decoder(found).schema_ids == tuple(ids[-NEWEST:])
    found.recall([ids[3], 999])
    assert decoder(found).schema_ids == (ids[3], *ids[-NEWEST:])


def test_versions_that_are_read_alike_share_a_decoder() -> None:
    registry = FakeRegistry()
    ids = [registry.register("orders-value", json.dumps({**ORDER, "doc": f"the {number}th"})) for number in range(5)]
    found = writers(registry)
    found.refresh()
    found.learn(SeenFrames(waiting=tuple(map(frame, ids))))
    assert set(decoder(found).bodies) == set(ids)
    assert len(set(decoder(found).bodies.values())) == 1


def test_a_column_of_any_name_is_in_the_type_of_rows() -> None:
    """Another engine may name a column so; in DDL the name would be a syntax error, at which the topic stops."""
    writers = writer_schemas(Topic("t", value="json"), None)
    target = Struct(
        (
            Field("value", Primitive(Kind.STRING)),
            Field("dotted.m \u00fc", Struct((Field("x y", Primitive(Kind.LONG)),))),
        )
    )
    found = writers.decoder(target, {})
    assert [field["name"] for field in json.loads(found.side.row_type)["fields"]][:2] == ["value", "dotted.m \u00fc"]
