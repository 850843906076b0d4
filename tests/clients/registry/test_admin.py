from __future__ import annotations

from collections.abc import Iterator

import pytest

from frazil.clients.registry.schemas import Reference, SchemaType
from frazil.errors import InvalidInput
from frazil.local.services import LocalServices
from tests.support.registry_admin import RegistryAdmin
from tests.support.registry_server import RegistryServer, says


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as running:
        yield running


def test_registering_twice_changes_nothing(server: RegistryServer) -> None:
    admin = RegistryAdmin(server.url)
    assert admin.register("s", '"int"') == admin.register("s", '"int"')
    assert [version.number for version in server.store.versions["s"]] == [1]


def test_type_and_references_are_sent(server: RegistryServer) -> None:
    schema_id = RegistryAdmin(server.url).register("s", "x", SchemaType.PROTOBUF, [Reference("a", "b", 2)])
    kept = server.store.schemas[schema_id]
    assert (kept.type, kept.references) == (SchemaType.PROTOBUF, (Reference("a", "b", 2),))


def test_a_refused_schema_is_told_with_the_registrys_words(server: RegistryServer) -> None:
    server.always = says(409, '{"error_code":409,"message":"Schema being registered is incompatible"}')
    with pytest.raises(InvalidInput, match=r"refuses the schema \(409\): Schema being registered is incompatible"):
        RegistryAdmin(server.url).register("s", '"int"')


@pytest.mark.e2e
def test_compatibility_is_enforced_once_it_is_set(local_world: LocalServices) -> None:
    admin, subject = RegistryAdmin(local_world.registry_url), "compatibility-value"
    admin.register(subject, '{"type":"record","name":"R","fields":[]}')
    admin.set_compatibility("BACKWARD", subject)
    with pytest.raises(InvalidInput, match="409"):
        admin.register(subject, '{"type":"record","name":"R","fields":[{"name":"new","type":"int"}]}')
