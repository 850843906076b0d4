"""What a changed field does is known for every field."""

from dataclasses import fields
from typing import Any, get_args

from frazil.declaration import Envelope, LandingEngine, Limits, Pipeline, Table, Topic, WriteMode
from frazil.declaration.change_effects import FIELDS


def _members(choice: Any) -> tuple[Any, ...]:
    return get_args(choice) or (choice,)


def declared_fields() -> set[str]:
    """Return the paths of all fields of a pipeline, those of its parts too."""
    return {
        *(f"topic.{each.name}" for each in fields(Topic)),
        *(f"table.{each.name}" for each in fields(Table)),
        *(f"write.{each.name}" for mode in _members(WriteMode) for each in fields(mode)),
        *(f"engine.{each.name}" for engine in _members(LandingEngine) for each in fields(engine)),
        *(f"envelope.{each.name}" for envelope in _members(Envelope) for each in fields(envelope)),
        *(f"engine.limits.{each.name}" for each in fields(Limits)),
        *(each.name for each in fields(Pipeline)),
    }


def test_every_field_of_a_declaration_has_its_effect() -> None:
    assert FIELDS.keys() == declared_fields() - {"topic", "table", "engine.limits", "name"}
