"""What a registry says of keys of bytes that begin as its serialiser writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from frazil.clients.registry.client import Registry
from frazil.declaration import Append, Pipeline, Table, Topic, Upsert
from frazil.declaration.write_modes import WriteMode
from frazil.errors import InvalidInput, RegistryUnavailable
from frazil.ingest.reporting.events import Reporter
from frazil.ingest.schema.framed_keys import FramedKeys, may_be_framed


class Subjects:
    """A registry with schemas of some ids, and how often it was asked for subjects."""

    def __init__(self, **ids: int) -> None:
        self.ids, self.asked = ids, 0

    def versions(self, subject: str) -> tuple[str, ...]:
        self.asked += 1
        return ("1",) if subject in self.ids else ()

    def subjects_of(self, schema_id: int) -> tuple[str, ...]:
        return tuple(name for name, number in self.ids.items() if number == schema_id)


def keys(
    registry: Subjects | None, write: WriteMode | None = None, clock: Callable[[], float] = lambda: 0.0
) -> tuple[FramedKeys, list[Mapping[str, Any]]]:
    events: list[Mapping[str, Any]] = []
    pipeline = Pipeline(topic=Topic("orders", value="avro"), table=Table("shop.orders"), write=write or Upsert())
    report = Reporter(events.append, "orders", "orders", "run", lambda: 0.0)
    return FramedKeys(pipeline, cast(Registry, registry), report, clock), events


@pytest.mark.parametrize(
    ("write", "key_format", "may"),
    [
        (Upsert(), "bytes", True),
        (Upsert(), "text", False),
        (Upsert(key="order_id"), "bytes", False),
        (Append(), "bytes", False),
    ],
)
def test_only_bytes_that_are_the_key_of_a_row_may_be_framed(write: WriteMode, key_format: str, may: bool) -> None:
    topic = Topic("orders", value="avro", key=key_format)
    assert may_be_framed(Pipeline(topic=topic, table=Table("shop.orders"), write=write)) is may


def test_a_subject_of_the_topics_keys_proves_it() -> None:
    found, _ = keys(Subjects(**{"orders-key": 7}))
    with pytest.raises(InvalidInput, match="has a schema of the topic's keys"):
        found.check((3, 3))
    found.check(None)
    other, _ = keys(Subjects(**{"orders-key": 7}), Append())
    other.check_subject()


def test_another_schema_is_reported_once() -> None:
    found, events = keys(Subjects(Key=7, Other=9))
    for ids in ((1, 6), (7, 7), (1, 9), (0, 7)):
        found.check(ids)
    assert [event["schema_id"] for event in events] == [7]
    assert "the registry has such a schema" in events[0]["message"]


def test_without_a_registry_it_is_said_that_none_can_be_asked() -> None:
    found, events = keys(None)
    for ids in ((5, 6), (1, 9)):
        found.check(ids)
    assert [event["schema_id"] for event in events] == [5]
    assert "no registry to ask" in events[0]["message"]


def test_the_registry_is_asked_only_for_ids_beyond_those_of_before() -> None:
    registry = Subjects()
    found, _ = keys(registry)
    for ids in ((4, 6), (5, 5), (4, 6), (3, 4), (6, 7), (3, 7)):
        found.check(ids)
    assert registry.asked == 3


def test_a_subject_that_appears_later_is_found_within_known_ids_too() -> None:
    registry, now = Subjects(), [0.0]
    found, _ = keys(registry, clock=lambda: now[0])
    found.check((1, 9))
    registry.ids["orders-key"] = 5
    now[0] = 599.0
    found.check((5, 5))
    now[0] = 600.0
    with pytest.raises(InvalidInput, match="has a schema of the topic's keys"):
        found.check((5, 5))


def test_a_registry_that_does_not_say_whose_an_id_is_stops_nothing() -> None:
    class Refuses(Subjects):
        def subjects_of(self, schema_id: int) -> tuple[str, ...]:
            raise RegistryUnavailable("the registry answers 403", where="registry", do="Grant it")

    found, events = keys(Refuses())
    found.check((7, 7))
    found.check((7, 8))
    assert ["answers 403" in event["message"] for event in events] == [True]
