"""The columns of a history: those of the state, and what each change did; they follow the state's schema."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import count

from py4j.protocol import Py4JJavaError

from frazil.declaration.partitioning import PartitionField, Transform
from frazil.errors import CatalogUnavailable, IncompatibleSchema, InvalidInput
from frazil.lake import ledger, tables
from frazil.lake.commit.committer import Committer
from frazil.lake.evolve import ATTEMPTS, evolve
from frazil.lake.history.history_ledger import HISTORY
from frazil.lake.iceberg_java import message, thrown
from frazil.lake.java_classes import Java
from frazil.schemas.iceberg import field_ids, row_type
from frazil.schemas.metadata import CHANGED_AT, OP
from frazil.schemas.schema_changes import changes, plain
from frazil.schemas.types import Field, Kind, Primitive, Struct

COMMITTED_AT = Field("_committed_at", Primitive(Kind.TIMESTAMPTZ), doc="when the state's commit made the change")
SEQUENCE = Field(
    "_sequence", Primitive(Kind.LONG), doc="sequence number of the state's commit; a key changes once in each"
)
END = Field("_end", Primitive(Kind.STRING), doc="next offset of each partition behind the state's commit, as JSON")
BEFORE = "_before"
OWN = (OP.name, CHANGED_AT.name, COMMITTED_AT.name, SEQUENCE.name, END.name, BEFORE)
"""The columns that a history has beside those of the state."""
STATE_NAMES = "frazil.state-columns"
"""Table property of a history: the names that the state's columns had, by field id, a JSON object. Renames are found by it."""


def state_names(stored: str | None) -> dict[int, str]:
    """Return the names that the state's columns have in a history, by the state's field id, from `STATE_NAMES`."""
    return {int(number): name for number, name in json.loads(stored or "{}").items()}


def wanted(state: Struct) -> Struct:
    """Return the columns of a history of `state`."""
    fields = tuple(replace(field, type=plain(field.type)) for field in state.fields)
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
    """Create the history of a loaded state if it is missing, and have its columns follow those of the state.

    First columns get the names of the state's, by field id, then others are added: the new column of a name that another one
    had is another column here, too. A column that the state has no longer gives its name away. Raises `IncompatibleSchema` if
    a name is taken all the same.
    """
    iceberg = job.iceberg
    schema = iceberg.schema_json(state)
    row, ids = row_type(schema), field_ids(schema)
    names = {number: name for name, number in ids.items()}
    check_names(row, history)
    if tables.create(
        iceberg,
        history,
        wanted(row),
        partition_by=(PartitionField(Transform.DAYS, COMMITTED_AT.name),),
        properties={**properties, ledger.WRITE_MODE: HISTORY, STATE_NAMES: _text(names)},
    ):
        return
    table = iceberg.load(history)
    if table.properties().get(STATE_NAMES) == _text(names) and not changes(
        row_type(iceberg.schema_json(table)), wanted(row)
    ):
        return
    _rename(job, history, names, int(iceberg.metadata(state)["last-column-id"]))
    evolve(job, history, lambda columns: changes(columns, wanted(row)))


def renamed(known: Mapping[int, str], names: Mapping[int, str]) -> tuple[tuple[str, str], ...]:
    """Return path and new name of each column that was renamed, the deepest first; both are paths by the state's field id."""
    found = ((known[number], names[number].rpartition(".")[2]) for number in known if number in names)
    changed = ((path, name) for path, name in found if path.rpartition(".")[2] != name)
    return tuple(sorted(changed, key=lambda one: (-one[0].count("."), one)))


def given_away(
    known: Mapping[int, str], names: Mapping[int, str], existing: Collection[str]
) -> tuple[tuple[str, str], ...]:
    """Return path and new name of each column that the state has no longer, and whose name another one of the state gets.

    `known` and `names` are as in `renamed`; `existing` are the paths of one image in the history, which have the known names.
    """
    there = {known[number] for number in known if number in names}
    ids = {name: number for number, name in names.items()}
    wanted_paths, found = dict[str, str](), list[tuple[str, str]]()
    for name in names.values():
        parent, _, last = name.rpartition(".")
        inside = known.get(ids[parent]) if parent else ""
        if inside is not None:  # else it is in a struct that is new, too
            wanted_paths[f"{inside}.{last}" if inside else last] = last
    for path in sorted(wanted_paths.keys() & set(existing) - there):
        parent, _, last = path.rpartition(".")
        prefix = f"{parent}." if parent else ""
        taken = {*existing, *wanted_paths, *OWN, *(f"{prefix}{name}" for _, name in found)}
        free = (f"{last}_dropped{number or ''}" for number in count())
        found.append((path, next(name for name in free if f"{prefix}{name}" not in taken)))
    return tuple(found)


def _rename(job: Committer, history: str, names: Mapping[int, str], last_id: int) -> None:
    """Rename the columns of both images, and keep their names in the same commit: done twice, a swap would be undone.

    `last_id` is the highest field id that the state has given. If the history knows a higher one, another driver has followed a
    newer schema. The names of this one would make the columns of that one look like those of columns that were dropped.
    """
    failure = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            job.wait(min(2.0, 0.05 * 2**attempt))
        table = job.iceberg.load(history)
        stored = table.properties().get(STATE_NAMES)
        if stored == _text(names):
            return
        known = state_names(stored)
        if max(known, default=0) > last_id:
            return
        existing = field_ids(job.iceberg.schema_json(table))
        images = {"": [path for path in existing if path not in OWN and not path.startswith(f"{BEFORE}.")]}
        images[f"{BEFORE}."] = [path.removeprefix(f"{BEFORE}.") for path in existing if path.startswith(f"{BEFORE}.")]
        found = [
            (f"{image}{path}", name)
            for image, paths in images.items()
            for path, name in (*(given_away(known, names, paths) if known else ()), *renamed(known, names))
            if path in paths
        ]
        transaction = table.newTransaction()
        try:
            if found:
                update = transaction.updateSchema()
                for path, name in found:
                    update.renameColumn(path, name)
                update.commit()
            transaction.updateProperties().set(STATE_NAMES, _text(names)).commit()
            transaction.commitTransaction()
            return
        except Py4JJavaError as error:
            failure = f"{thrown(error)}: {message(error)}"
            if tables.is_refused(error):
                raise IncompatibleSchema(
                    f"the history's columns cannot follow those of the state: {failure}",
                    where=f"table {history}",
                    do=f"Rename the column that has the name: {', '.join(f'{path} becomes {name}' for path, name in found)}",
                ) from None
    raise CatalogUnavailable(f"the schema commit did not succeed: {failure}", where=f"table {history}", do="Run again")


def _text(names: Mapping[int, str]) -> str:
    return json.dumps({str(number): name for number, name in sorted(names.items())})
