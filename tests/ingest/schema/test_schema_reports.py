"""What is reported of schemas: each thing once."""

from __future__ import annotations

import json
from typing import Any

from frazil.clients.registry.schemas import SchemaType
from frazil.declaration import Topic
from frazil.declaration.options import MetadataColumns
from frazil.decode.keys.key_column import Keys
from frazil.decode.writers.topic_writers import writer_schemas
from frazil.ingest.reporting.events import Event, Reporter
from frazil.ingest.schema.schema_reports import SchemaReports
from tests.support.fake_registry import FakeRegistry

LABELS = {"type": "object", "properties": {"team": {"type": "string"}}, "additionalProperties": {"type": "string"}}
SAID = "labels: other properties (additionalProperties)"


def reports() -> tuple[SchemaReports, list[Any]]:
    seen: list[Any] = []
    return SchemaReports(Reporter(seen.append, "orders", "Orders", "r1", lambda: 1.0)), seen


def schema(**more: Any) -> str:
    return json.dumps({"type": "object", "properties": {"labels": LABELS, **more}})


def test_properties_that_land_in_no_column_are_reported_once_for_values_and_keys() -> None:
    registry, (made, seen) = FakeRegistry(), reports()
    for subject in ("orders-value", "orders-key"):
        registry.register(subject, schema(), kind=SchemaType.JSON)
        registry.register(subject, schema(more={"type": "integer"}), kind=SchemaType.JSON)
    topic = Topic("orders", value="json_schema", key="json_schema")
    values = writer_schemas(topic, registry)  # type: ignore[arg-type]
    keys = Keys(topic, registry, MetadataColumns.FLAT)  # type: ignore[arg-type]
    for writers in (values, keys.writers):
        writers.refresh()
        made, seen = reports()
        made.omitted(writers.omissions)
        made.omitted(writers.omissions)
        (event,) = seen
        assert (event["event"], event["properties"]) == (Event.PROPERTIES_OMITTED, [SAID])
        assert SAID in event["message"]
