"""The columns of a history: those of the state, and what each change did; they follow the state's schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from frazil.declaration.partitioning import PartitionField, Transform
from frazil.errors import InvalidInput
from frazil.lake import ledger, tables
from frazil.lake.commit.committer import Committer
from frazil.lake.evolve import evolve
from frazil.lake.history.history_ledger import HISTORY
from frazil.lake.java_classes import Java
from frazil.schemas.iceberg import field_ids, row_type
from frazil.schemas.metadata import CHANGED_AT, OP
from frazil.schemas.schema_changes import changes, plain
from frazil.schemas.types import Field, Kind, ListOf, MapOf, Primitive, Struct, Type

COMMITTED_AT = Field("_committed_at", Primitive(Kind.TIMESTAMPTZ), doc="when the state's commit made the change")
SEQUENCE = Field(
    "_sequence", Primitive(Kind.LONG), doc="sequence number of the state's commit; a key changes once in each"
)
END = Field("_end", Primitive(Kind.STRING), doc="next offset of each partition behind the state's commit, as JSON")
BEFORE = "_before"
OWN = (OP.name, CHANGED_AT.name, COMMITTED_AT.name, SEQUENCE.name, END.name, BEFORE)
"""The columns that a history has beside those of the state."""
_NAMES = "frazil.state-columns"
"""Table property of a history: the names that the state's columns had, by field id, a JSON object. Renames are found by it."""


def wanted(state: Struct, ids: Mapping[str, int], known: Mapping[int, str]) -> Struct:
    """Return the columns of a history of `state`; `ids` are the state's field ids by name, `known` the last names by field id."""
    fields = _named(Struct(tuple(replace(f, type=plain(f.type)) for f in state.fields)), "", ids, known).fields
    about = (replace(OP, doc="c insert, u update, d delete"), CHANGED_AT, COMMITTED_AT, SEQUENCE, END)
    return Struct((*fields, *about, Field(BEFORE, Struct(fields), doc="the row before the change; null for an insert")))


def check_names(state: Struct, table: str) -> None:
    """Raise `InvalidInput` if the state has a column that a history has for itself."""
    for name in (field.name for field in state.fields if field.name in OWN):
        raise InvalidInput(
            f"the column {name} is Frazil's own in the history of a table of current state",
            where=f"table {table}, column {name}",
            do="Rename the field, or remove history from write=Upsert()",
        )


def make(job: Committer, history: str, state: Java, properties: Mapping[str, str]) -> None:
    """Create the history of a loaded state if it is missing, and have its columns follow those of the state."""
    iceberg = job.iceberg
    schema = iceberg.schema_json(state)
    row, ids = row_type(schema), field_ids(schema)
    names = json.dumps({str(number): name for name, number in ids.items()}, sort_keys=True)
    check_names(row, history)
    if tables.create(
        iceberg,
        history,
        wanted(row, ids, {}),
        partition_by=(PartitionField(Transform.DAYS, COMMITTED_AT.name),),
        properties={**properties, ledger.WRITE_MODE: HISTORY, _NAMES: names},
    ):
        return
    found = iceberg.load(history).properties().get(_NAMES)
    if found == names:
        return
    known = {int(number): name for number, name in json.loads(found or "{}").items()}
    evolve(job, history, lambda columns: changes(columns, wanted(row, ids, known)))
    iceberg.load(history).updateProperties().set(_NAMES, names).commit()


def _named(struct: Struct, prefix: str, ids: Mapping[str, int], known: Mapping[int, str]) -> Struct:
    """Return the struct with the former name of each field that was renamed, as an alias."""

    def field(one: Field) -> Field:
        path = f"{prefix}{one.name}"
        was = known.get(ids[path], path).rpartition(".")[2] if path in ids else one.name
        return replace(one, type=_inside(one.type, path, ids, known), aliases=(was,) if was != one.name else ())

    return Struct(tuple(map(field, struct.fields)))


def _inside(of: Type, path: str, ids: Mapping[str, int], known: Mapping[int, str]) -> Any:
    match of:
        case Struct():
            return _named(of, f"{path}.", ids, known)
        case ListOf(element=element):
            return replace(of, element=_inside(element, f"{path}.element", ids, known))
        case MapOf(value=value):
            return replace(of, value=_inside(value, f"{path}.value", ids, known))
    return of
