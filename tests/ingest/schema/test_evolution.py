"""What a pipeline's schemas refuse before any of them is known."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from frazil.declaration import Changelog, Json, Pipeline, Table, Topic, Upsert
from frazil.decode.writers.topic_writers import writer_schemas
from frazil.errors import InvalidInput
from frazil.ingest.schema.evolution import Evolution
from frazil.ingest.schema.schema_reports import SchemaReports
from frazil.schemas.metadata import metadata_fields
from frazil.schemas.types import Field, Kind, Primitive, Struct
from tests.envelopes.fields_envelope import Fields, FieldsEvents
from tests.support.fake_registry import FakeRegistry


def test_the_order_of_changes_is_compared_where_columns_are_declared() -> None:
    """Declared columns are known from the start: no schema is asked for, and none is learned."""
    topic = Topic("orders", value=Json(columns=("id long", "seq long", "op string")), key="text")
    pipeline = Pipeline(topic=topic, table=Table("shop.orders"), write=Upsert(key="id"))
    writers = writer_schemas(topic, None, envelope=FieldsEvents(Fields(operation="op", key=("id",), order=("seq",))))
    job: Any = SimpleNamespace(iceberg=SimpleNamespace(exists=lambda table: False), clock=None, new_id=None)
    report: Any = None
    with pytest.raises(InvalidInput, match="ordered by seq"):
        Evolution(pipeline, job, writers, report)


def avro(*fields: str) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": [{"name": f, "type": "string"} for f in fields]})


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (Upsert(on_tombstone="soft_delete"), "_deleted_at"),
        (Upsert(), "_order"),
        (Changelog(), "_op"),
        (Changelog(), "_CHANGED_AT"),
    ],
)
def test_a_later_version_with_a_column_of_frazils_own_does_not_end_its_pipeline(write: Any, name: str) -> None:
    registry: Any = FakeRegistry()
    first = registry.register("orders-value", avro("id"))
    topic = Topic("orders", value="avro", key="text")
    pipeline = Pipeline(topic=topic, table=Table("shop.orders"), write=write)
    writers = writer_schemas(topic, registry)
    job: Any = SimpleNamespace(iceberg=SimpleNamespace(exists=lambda table: False), clock=None, new_id=None)
    report: Any = None
    evolution = Evolution(pipeline, job, writers, report)
    evolution.refresh()
    second = registry.register("orders-value", avro("id", name))
    evolution.refresh()
    assert evolution.made_of()[0] == ("_kafka_key",)
    there = Struct((Field("id", Primitive(Kind.STRING)), *metadata_fields(struct=False, key=Primitive(Kind.STRING))))
    landing, _ = evolution._landing(there)
    assert list(landing.incompatible) == [second]
    assert "Frazil's own" in str(landing.incompatible[second])
    assert [f.name for f in landing.target.fields] == ["id"]
    # If no version is another one, the declaration must change.
    alone: Any = FakeRegistry()
    alone.register("orders-value", avro("id", name))
    evolution = Evolution(pipeline, job, writer_schemas(topic, alone), report)
    evolution.refresh()
    with pytest.raises(InvalidInput, match="is Frazil's own"):
        evolution.made_of()
    assert first != second


def test_each_version_that_does_not_land_is_reported_once_with_its_problem() -> None:
    events: list[tuple[Any, ...]] = []
    reports = SchemaReports(lambda event, **facts: events.append((event, *facts.values())))  # type: ignore[arg-type]
    for _ in range(3):
        reports.incompatible([(7, "Order.price: bytes cannot become a struct"), (7, "no JSON"), (8, "a group")])
    assert [(schema_id, message) for _, schema_id, message in events] == [
        (7, "Order.price: bytes cannot become a struct"),
        (7, "no JSON"),
        (8, "a group"),
    ]
