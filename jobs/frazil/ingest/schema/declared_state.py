"""The problems of a table with a key that declared columns show before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from frazil.declaration import Pipeline
from frazil.declaration.checks.problems import Problem
from frazil.declaration.formats import Bytes, Json, Text
from frazil.declaration.topic import Topic
from frazil.decode.keys.row_key import value_key
from frazil.decode.keys.row_order import TIMESTAMP, row_order
from frazil.errors import InvalidInput
from frazil.schemas.connect.connect_types import row_meaning
from frazil.schemas.declared_columns import declared_type
from frazil.schemas.evolution.merge import merge
from frazil.schemas.key_fields import KEY_VERSION
from frazil.schemas.types import Struct
from frazil.write.mode_of import mode_of


def problems(pipeline: Pipeline, values: Struct) -> Iterator[Problem]:
    """Yield why a run would refuse rows of the declared type `values`, in the run's words; paths are below the pipeline.

    If a registry or a file describes the record's key, its fields are not known here, and one of them may be in `order_by`.
    """
    if not pipeline.write.has_key:
        return
    topic, names = pipeline.topic, pipeline.write.key
    if names is not None:
        yield from _refused("write.key", value_key, values, values, names, _fields(topic))
    fields = _fields(topic) if names is None else Struct(())
    merged = merge([*([(KEY_VERSION, fields)] if fields is not None else ()), (0, values)])
    if merged.incompatible:  # the table's columns are not known, and a run reports the versions that do not fit
        return
    row = merged.type
    yield from _refused(
        f"topic.value.{'columns' if topic.value.columns else 'schema'}", mode_of(pipeline).check_columns, row
    )
    there = {TIMESTAMP, *(name for field in row.fields for name in (field.name, *field.aliases))}
    for index, name in enumerate(pipeline.write.order_columns):
        if fields is not None or name in there:
            yield from _refused(f"write.order_by[{index}]", row_order, (name,), row)


def _fields(topic: Topic) -> Struct | None:
    """Return the fields of the record's key, none for a key of one value; None if they are not known."""
    if topic.key.columns:
        return row_meaning(declared_type(topic.key.columns))
    return Struct(()) if isinstance(topic.key, Bytes | Text | Json) else None


def _refused(path: str, check: Callable[..., Any], *given: Any) -> Iterator[Problem]:
    try:
        check(*given)
    except InvalidInput as error:
        yield Problem(path, error.what, error.do)
