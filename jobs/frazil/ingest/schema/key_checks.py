"""Checks that the columns of a key hold the values of the record's key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from frazil.declaration import Pipeline
from frazil.errors import IncompatibleSchema, InvalidInput
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.ledger import entry as ledger
from frazil.schemas.evolution.field_ids import SINGLE_VALUE
from frazil.schemas.evolution.merge import merge, same_field
from frazil.schemas.evolution.table_mapping import landing
from frazil.schemas.iceberg import column_names, identifier_fields
from frazil.schemas.key_fields import KEY_VERSION
from frazil.schemas.types import Struct


def check_types(pipeline: Pipeline, incompatible: Mapping[int, IncompatibleSchema]) -> None:
    """Raise if the columns of the key do not hold what the record's key has; `incompatible` are the versions that do not fit."""
    problem = incompatible.get(KEY_VERSION)
    if problem is not None and pipeline.write.key is None:
        raise problem
    if problem is not None:
        raise InvalidInput(
            f"the record's key has the field {problem.where} in another type than the value: {problem.what}",
            where=f"pipeline {pipeline.name}",
            do="With keys of format bytes the columns come from the value alone. A table keeps its format: name another one",
        )


def check_key_fields(
    pipeline: str,
    fields: Struct,
    versions: Sequence[tuple[int, Struct]],
    incompatible: Mapping[int, IncompatibleSchema],
) -> None:
    """Raise `InvalidInput` if no version of the values fits with a field of the key that has the same name."""
    if not {number for number, _ in versions} <= incompatible.keys():
        return
    for field in fields.fields:
        other = same_field(field, merge(versions).type.fields)
        if other is not None and merge(((0, Struct((field,))), (1, Struct((other,))))).incompatible:
            raise InvalidInput(
                f"the record's key has the field {field.source} as {field.type}, and the value has the field {other.source} "
                f"as {other.type}: both would be the column {field.name}",
                where=f"pipeline {pipeline}",
                do="Land the topic with write=Append() and no envelope, or have its producer rename the key's field in a new topic",
            )


def too_wide(rows: Struct, key: Struct) -> IncompatibleSchema | None:
    """Return why a version of a key that is a record needs a wider column than these rows have."""
    if SINGLE_VALUE in key.origins:
        return None
    return landing(rows, [(KEY_VERSION, key)], may_widen=False).incompatible.get(KEY_VERSION)


def key_of_table(pipeline: Pipeline, iceberg: Iceberg) -> tuple[str, ...]:
    """Return the columns of the key that the pipeline's table was made for, in the order of their ids."""
    stored = iceberg.load(pipeline.table.identifier)
    schema = iceberg.schema_json(stored)
    if pipeline.write.keeps_changes:
        return ledger.key_of(stored.properties(), column_names(schema))
    return identifier_fields(schema)
