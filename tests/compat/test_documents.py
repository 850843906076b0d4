"""Documents and objects that release 0.1.0 wrote are read, and keep their digests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from frazil.declaration.document import canonical, document, parse
from frazil.declaration.environment import parse_environment
from frazil.declaration.upgrade import upgraded
from frazil.release.manifest import parse_manifest
from frazil.rollout.desired import desired_document, parse_desired
from frazil.rollout.state import state_key, stored_state
from frazil.rollout.stopped_pipelines import stops_key, with_stops
from tests.support.fake_store import FakeStore

WRITTEN = Path(__file__).parent / "0.1.0" / "documents"


def written(name: str) -> bytes:
    return (WRITTEN / f"{name}.json").read_bytes()


def test_a_declaration_is_read_and_says_the_same() -> None:
    pipelines = parse(written("declaration"))
    assert [p.name for p in pipelines] == ["orders", "clicks"]
    assert pipelines[0].table.keep_days == 3
    assert pipelines[1].kafka_options == {"fetch.max.bytes": "1048576"}
    old, new = upgraded(json.loads(written("declaration"))).members, json.loads(canonical(document(pipelines)))
    assert [_common(o, n) for o, n in zip(old["pipelines"], new["pipelines"], strict=True)] == old["pipelines"]
    assert parse(canonical(document(pipelines))) == pipelines


@pytest.mark.parametrize("catalog", ["local", "rest", "glue"])
def test_an_environment_is_read(catalog: str) -> None:
    found = parse_environment(written(f"environment-{catalog}"))
    assert (found.name, found.catalog.kind, found.kafka.bootstrap) == (catalog, catalog, "broker:9092")


def test_a_releases_manifest_is_read_under_its_key() -> None:
    release = parse_manifest(written("manifest"))
    assert release.version == "0.1.0"
    assert release.digest == json.loads(written("digests"))["release"]


def test_a_generation_keeps_its_digest() -> None:
    desired = parse_desired(written("desired"))
    assert desired.digest == json.loads(written("digests"))["desired"]
    assert parse_desired(desired_document(desired)) == desired


def test_what_was_proven_and_what_was_stopped_is_remembered() -> None:
    desired, store = parse_desired(written("desired")), FakeStore()
    for key, name in (
        (state_key(desired.job), "memory"),
        (stops_key(desired.job), "stops"),
        (desired.document, "declaration"),
    ):
        store.put_once(key, written(name))
    memory = stored_state(store, desired.job)
    assert (memory.number, memory.proven, memory.given_up) == (7, desired, (desired.digest,))
    assert with_stops(desired, store).stopped == ("clicks",)


def _common(old: object, new: object) -> object:
    """The members of `new` that `old` has."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {key: _common(value, new.get(key)) for key, value in old.items()}
    return new
