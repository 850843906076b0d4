"""What a changed field does is known for every field."""

from dataclasses import fields
from typing import Any, get_args

import pytest

from frazil.declaration import (
    By,
    Envelope,
    EventTime,
    Format,
    Keep,
    LandingEngine,
    Limits,
    Order,
    Pipeline,
    Reading,
    Route,
    Shape,
    Table,
    Topic,
    WriteMode,
)
from frazil.declaration.checks.change_effects import FIELDS


def _members(choice: Any) -> tuple[Any, ...]:
    return get_args(choice) or (choice,)


def declared_fields() -> set[str]:
    """Return the paths of all fields of a pipeline, those of its parts too."""
    return {
        *(f"topic.{each.name}" for each in fields(Topic)),
        *(f"topic.value.{each.name}" for of in _members(Format) for each in fields(of)),
        *(f"topic.key.{name}" for name in ("columns", "schema", "framing", "record_name")),  # others are of values
        *(f"table.{each.name}" for each in fields(Table)),
        *(f"write.{each.name}" for mode in _members(WriteMode) for each in fields(mode)),
        *(f"engine.{each.name}" for engine in _members(LandingEngine) for each in fields(engine)),
        *(f"envelope.{each.name}" for envelope in _members(Envelope) for each in fields(envelope)),
        *(f"engine.limits.{each.name}" for each in fields(Limits)),
        *(f"table.snapshots.{each.name}" for each in fields(Keep)),
        *(f"write.order_by.{each.name}" for each in fields(Order)),
        *(f"kafka.{each.name}" for each in fields(Reading)),
        *(f"shape.{each.name}" for each in fields(Shape)),
        *(f"shape.event_time.{each.name}" for each in fields(EventTime)),
        *(f"shape.route.{each.name}" for each in fields(Route)),
        *(f"shape.route.by.{each.name}" for by in _members(By) for each in fields(by)),
        *(each.name for each in fields(Pipeline)),
    }


def test_every_field_of_a_declaration_has_its_effect() -> None:
    assert FIELDS.keys() == declared_fields() - {
        "topic",
        "table",
        "table.snapshots",
        "kafka",
        "shape",
        "engine.limits",
        "name",
    }


@pytest.mark.parametrize("field", ["topic.value.columns", "topic.key.columns"])
def test_another_unit_of_a_declared_column_is_said(field: str) -> None:
    before = ("id long", "at io.debezium.time.Timestamp", "all list<struct<d: io.debezium.time.Date>>")
    effect = FIELDS[field]
    after = ("at io.debezium.time.MicroTimestamp", "all list<struct<d: date>>", "id int", "new timestamp")
    said = effect.said(before, after)
    assert "at was io.debezium.time.Timestamp and is read as io.debezium.time.MicroTimestamp" in said
    assert "all.element.d was io.debezium.time.Date and is read as date" in said
    assert effect.said(before, (*before[:2], "id int")) == effect.what
    assert effect.said(None, after) == effect.said(before, None) == effect.what
