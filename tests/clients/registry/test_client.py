"""How a registry behaves towards its caller: the client on a server and on a real registry, and the fake alike."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pytest

from frazil.clients.registry.client import Registry
from frazil.clients.registry.http import RetryPolicy
from frazil.clients.registry.schemas import Reference, RegisteredSchema, SchemaType
from frazil.clients.secrets import Secrets
from frazil.declaration import environment
from frazil.errors import RegistryUnavailable, UnreadableSchema
from tests.support.fake_registry import FakeRegistry
from tests.support.fake_time import FakeTime
from tests.support.registry_admin import RegistryAdmin
from tests.support.registry_server import RegistryServer, says
from tests.support.schema_store import SchemaStore


class Writer(Protocol):
    def register(
        self, subject: str, text: str, kind: SchemaType = ..., references: Sequence[Reference] = ()
    ) -> int: ...

    def delete_version(self, subject: str, version: int) -> None: ...

    def delete_subject(self, subject: str, *, permanent: bool = False) -> None: ...


def record(name: str, *fields: str) -> str:
    return json.dumps({"type": "record", "name": name, "fields": [{"name": field, "type": "int"} for field in fields]})


def client(url: str, **others: Any) -> Registry:
    time = FakeTime()
    return Registry.of(
        environment.Registry(url=url),
        Secrets({}),
        clock=time.clock,
        sleep=time.sleep,
        retry=RetryPolicy(attempts=2),
        **others,
    )


@dataclass(frozen=True)
class Pair:
    """A registry to read and to write; `another` makes a second reader of it."""

    registry: Any
    writer: Writer
    another: Callable[..., Any]

    @staticmethod
    def subject() -> str:
        """A name that no other test has: real registries are shared."""
        return f"{uuid.uuid4()}-value"


@pytest.fixture(params=["fake", "server", pytest.param("real", marks=pytest.mark.e2e)])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    if request.param == "fake":
        store = SchemaStore()
        fake = FakeRegistry(store)
        yield Pair(fake, fake, lambda **others: FakeRegistry(store, **others))
    elif request.param == "server":
        with RegistryServer() as server:
            yield Pair(client(server.url), RegistryAdmin(server.url), lambda **o: client(server.url, **o))
    else:
        url = request.getfixturevalue("local_world").registry_url
        yield Pair(client(url), RegistryAdmin(url), lambda **others: client(url, **others))


class TestBehaviour:
    """What every registry does."""

    def test_a_schema_is_what_was_registered(self, pair: Pair) -> None:
        text = record("Order", "a")
        schema_id = pair.writer.register(pair.subject(), text)
        assert pair.registry.schema(schema_id) == RegisteredSchema(id=schema_id, type=SchemaType.AVRO, text=text)

    def test_types_and_references_are_kept(self, pair: Pair) -> None:
        json_text = '{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}'
        assert pair.registry.schema(pair.writer.register(pair.subject(), json_text, SchemaType.JSON)).type == "json"
        base, user = pair.subject(), pair.subject()
        common = 'syntax = "proto3"; package common; message C { int32 x = 1; }'
        pair.writer.register(base, common, SchemaType.PROTOBUF)
        text = 'syntax = "proto3"; import "c.proto"; message D { common.C c = 1; }'
        reference = Reference("c.proto", base, 1)
        schema = pair.registry.schema(pair.writer.register(user, text, SchemaType.PROTOBUF, [reference]))
        assert (schema.type, schema.text, schema.references) == (SchemaType.PROTOBUF, text, (reference,))
        assert pair.registry.resolve_references(schema) == {"c.proto": common}

    @pytest.mark.parametrize("schema_id", [0, 987_654, 2**31 - 1, 2**31, 2**32 - 1])
    def test_an_unknown_id_is_a_verdict(self, pair: Pair, schema_id: int) -> None:
        assert pair.registry.schema(schema_id) is None

    def test_versions_come_in_order_with_their_ids(self, pair: Pair) -> None:
        subject = pair.subject()
        first = pair.writer.register(subject, record("A"))
        second = pair.writer.register(subject, record("A", "x"))
        found = pair.registry.versions(subject)
        assert [(one.subject, one.version, one.id) for one in found] == [(subject, 1, first), (subject, 2, second)]

    def test_a_new_version_is_seen(self, pair: Pair) -> None:
        subject = pair.subject()
        pair.writer.register(subject, record("A"))
        before = pair.registry.versions(subject)
        pair.writer.register(subject, record("A", "x"))
        assert pair.registry.versions(subject)[:1] == before
        assert len(pair.registry.versions(subject)) == 2

    def test_a_subject_that_does_not_exist_has_no_versions(self, pair: Pair) -> None:
        assert pair.registry.versions(pair.subject()) == ()

    def test_a_deleted_version_is_told_when_asked_for_and_its_schema_stays(self, pair: Pair) -> None:
        subject = pair.subject()
        gone = pair.writer.register(subject, record("A"))
        pair.writer.register(subject, record("A", "x"))
        pair.writer.delete_version(subject, 1)
        assert [one.version for one in pair.registry.versions(subject)] == [2]
        assert [one.version for one in pair.registry.versions(subject, deleted=True)] == [1, 2]
        assert pair.registry.schema(gone).text == record("A")

    def test_a_subject_that_was_deleted_for_good_and_made_again_is_told_as_it_is_now(self, pair: Pair) -> None:
        subject = pair.subject()
        pair.writer.register(subject, record("A"))
        pair.writer.register(subject, record("A", "x"))
        assert len(pair.registry.versions(subject)) == 2
        pair.writer.delete_subject(subject)
        pair.writer.delete_subject(subject, permanent=True)
        third = pair.writer.register(subject, record("B"))
        fourth = pair.writer.register(subject, record("B", "x"))
        assert [one.id for one in pair.registry.versions(subject)] == [third, fourth]

    @pytest.mark.parametrize("name", ["a/b c", "ü-value", "a?b#c", "%2F", "shop.orders-shop.Order"])
    def test_subjects_may_have_any_name(self, pair: Pair, name: str) -> None:
        subject = f"{pair.subject()}{name}"
        schema_id = pair.writer.register(subject, record("A"))
        assert [one.id for one in pair.registry.versions(subject)] == [schema_id]
        assert subject in pair.registry.subjects()

    def test_a_schema_tells_its_subjects_deleted_ones_too(self, pair: Pair) -> None:
        one, other = pair.subject(), pair.subject()
        unique = record(f"A{uuid.uuid4().hex}")
        schema_id = pair.writer.register(one, unique)
        assert pair.writer.register(other, unique) == schema_id
        assert pair.registry.subjects_of(schema_id) == tuple(sorted((one, other)))
        pair.writer.register(one, record("A", "x"))
        pair.writer.delete_version(one, 1)
        assert pair.registry.subjects_of(schema_id) == tuple(sorted((one, other)))

    @pytest.mark.parametrize("schema_id", [987_654, 2**31])
    def test_an_unknown_id_has_no_subjects(self, pair: Pair, schema_id: int) -> None:
        assert pair.registry.subjects_of(schema_id) == ()

    def test_a_reference_to_a_deleted_version_is_resolved(self, pair: Pair) -> None:
        base = pair.subject()
        pair.writer.register(base, record("Inner"))
        text = '{"type":"record","name":"Outer","fields":[{"name":"inner","type":"Inner"}]}'
        schema_id = pair.writer.register(pair.subject(), text, SchemaType.AVRO, [Reference("Inner", base, 1)])
        pair.writer.register(base, record("Inner", "x"))
        schema = pair.registry.schema(schema_id)
        assert pair.registry.resolve_references(schema) == {"Inner": record("Inner")}

    def test_a_guid_that_is_unknown_has_no_id(self, pair: Pair) -> None:
        pair.writer.register(pair.subject(), record("A"))
        assert pair.registry.id_of_guid(str(uuid.uuid4())) is None


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as running:
        yield running


class TestClient:
    """What the client does beyond: asking seldom, remembering, and never taking an outage for a verdict."""

    def test_a_schema_is_asked_for_once(self, server: RegistryServer) -> None:
        registry, schema_id = client(server.url), server.store.register("s", record("A"))
        assert registry.schema(schema_id) is registry.schema(schema_id)
        assert server.requests == ["/base/schemas/ids/1"]

    def test_an_unknown_id_is_asked_for_again(self, server: RegistryServer) -> None:
        registry = client(server.url)
        assert registry.schema(1) is None
        server.store.register("s", record("A"))
        assert registry.schema(1) is not None

    def test_a_subject_that_did_not_change_costs_two_requests(self, server: RegistryServer) -> None:
        registry = client(server.url)
        for field in ("a", "b", "c"):
            server.store.register("s", record("A", field))
        first = registry.versions("s")
        del server.requests[:]
        assert registry.versions("s") == first
        assert server.requests == ["/base/subjects/s/versions", "/base/subjects/s/versions/3"]

    def test_versions_bring_the_guids_of_headers(self, server: RegistryServer) -> None:
        registry, schema_id = client(server.url), server.store.register("s", record("A"))
        (version,) = registry.versions("s")
        del server.requests[:]
        assert version.guid is not None
        assert registry.id_of_guid(version.guid) == schema_id
        assert server.requests == []

    def test_a_guid_of_another_subject_is_looked_up_once(self, server: RegistryServer) -> None:
        registry, schema_id = client(server.url), server.store.register("s", record("A"))
        guid = server.store.guid(schema_id)
        assert (registry.id_of_guid(guid), registry.id_of_guid(guid)) == (schema_id, schema_id)
        assert len(server.requests) == 1

    def test_a_registry_without_guids_knows_none(self, server: RegistryServer) -> None:
        server.has_guids = False
        server.misbehaviours.append(says(404, '{"error_code":404,"message":"no such path"}'))
        assert client(server.url).id_of_guid(str(uuid.uuid4())) is None

    def test_a_wrong_address_is_no_verdict_about_a_guid(self, server: RegistryServer) -> None:
        server.always = says(404, '{"error_code":404,"message":"no such path"}')
        with pytest.raises(RegistryUnavailable):
            client(server.url).id_of_guid(str(uuid.uuid4()))

    def test_a_registry_that_refuses_to_tell_deleted_versions_tells_the_others(self, server: RegistryServer) -> None:
        server.knows_deleted = False
        server.store.register("s", record("A"))
        assert len(client(server.url).versions("s", deleted=True)) == 1

    def test_a_subject_whose_versions_are_all_deleted_has_none(self, server: RegistryServer) -> None:
        server.store.register("s", record("A"))
        server.store.delete_subject("s")
        assert client(server.url).versions("s") == ()
        assert len(client(server.url).versions("s", deleted=True)) == 1

    def test_a_version_that_vanishes_while_it_is_read_is_left_out(self, server: RegistryServer) -> None:
        server.store.register("s", record("A"))
        server.misbehaviours += [says(200, "[1,2]")]
        assert [one.version for one in client(server.url).versions("s")] == [1]

    @pytest.mark.parametrize(
        ("status", "body"),
        [
            (404, '{"error_code":404,"message":"no such path"}'),
            (404, '{"error_code":0,"message":"RESTEASY003210"}'),
            (404, '{"error_code":"40403"}'),
            (404, "[]"),
            (404, "<html>"),
            (200, '{"error_code":40403,"message":"a proxy that knows no statuses"}'),
            (200, "{}"),
            (200, "[]"),
            (422, '{"error_code":42201,"message":"?"}'),
        ],
    )
    def test_what_is_no_registrys_answer_is_no_verdict(self, server: RegistryServer, status: int, body: str) -> None:
        server.always = says(status, body)
        with pytest.raises(RegistryUnavailable):
            client(server.url).schema(1)

    @pytest.mark.parametrize("body", ["{}", "null", '["1"]', '[1, "a"]', "[[]]", '"1"'])
    def test_versions_that_are_no_numbers_are_no_answer(self, server: RegistryServer, body: str) -> None:
        server.always = says(200, body)
        with pytest.raises(RegistryUnavailable):
            client(server.url).versions("s")

    def test_a_type_that_we_do_not_know_is_a_verdict_about_that_schema_alone(self, server: RegistryServer) -> None:
        registry, schema_id = client(server.url), server.store.register("s", record("A"))
        server.misbehaviours.append(says(200, '{"schema":"<xs/>","schemaType":"XML"}'))
        with pytest.raises(UnreadableSchema, match="XML"):
            registry.schema(77)
        assert registry.schema(schema_id) is not None

    def test_prefetched_schemas_are_in_memory(self, server: RegistryServer) -> None:
        ids = [server.store.register("s", record("A", f"f{number}")) for number in range(9)]
        registry = client(server.url)
        registry.prefetch([*ids, 404])
        server.always = says(500)
        assert [registry.schema(schema_id) is not None for schema_id in ids] == [True] * 9
