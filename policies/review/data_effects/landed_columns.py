"""The effects of changed schema files, and of changed declared columns, on the columns of a table.

A job lands what is declared now alone, into columns that earlier declarations made. Without a version that fits, nothing lands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from frazil.declaration import Avro, MetadataColumns, Pipeline, SchemaEvolution, SchemaFile
from frazil.declaration.checks.change_effects import Outcome
from frazil.errors import IncompatibleSchema
from frazil.schema_files.declared_rows import declared_rows, is_single_value
from frazil.schemas.connect.connect_types import row_meaning
from frazil.schemas.declared_columns import declared_type, with_unknown
from frazil.schemas.evolution.column_names import folded
from frazil.schemas.evolution.merge import merge
from frazil.schemas.evolution.schema_changes import changes, columns_of, plain
from frazil.schemas.evolution.table_mapping import Landing, landing, named_as
from frazil.schemas.json_columns import with_variants
from frazil.schemas.key_fields import KEY_VERSION, key_version
from frazil.schemas.types import Struct
from policies.review.data_effects.effects import Effect
from policies.review.data_effects.shaped_rows import shape_effects

Versions = Sequence[tuple[int, Struct]]

_ROW, _MARKS = "after", ("__op", "__deleted")
"""In events of change data: the field that holds the row; those of flattened ones that say what an event does."""
_NEW_TABLE = "Declare another pipeline and table"


def declared_column_effects(old: Pipeline, new: Pipeline) -> Iterator[Effect]:
    """Yield the effects on the columns, if both declare them, or both schema files. Raises `UnreadableSchema`."""
    if changed := _changed(old, new, "key"):
        yield from _of_keys(new, _Keys.of(old), _Keys.of(new), changed)
    if changed := _changed(old, new, "value"):
        yield from _of_values(old, new, changed)


def _changed(old: Pipeline, new: Pipeline, side: str) -> str:
    """Return the path of the columns or schema files that both have, and that differ; empty if there are none."""
    before, after = (each.topic.side(is_key=side == "key") for each in (old, new))
    if before.columns and after.columns and before.columns != after.columns:
        return f"topic.{side}.columns"
    if before.schema and after.schema and before.schema != after.schema:
        return f"topic.{side}.schema"
    return ""


def _of_values(old: Pipeline, new: Pipeline, changed: str) -> Iterator[Effect]:
    before, after = (_rows(each) for each in (old, new))
    yield from shape_effects(new, before, after, changed)
    if new.shape.select is not None:
        return
    fields = named_as(merge(before).type, merge(after).type).fields
    names = {field.name for field in fields} | {folded(name) for f in fields for name in (*f.aliases, f.source)}
    if lost := [name for name in new.write.key or () if name not in names]:
        what = f"no record has the key column {', '.join(lost)} any more: the pipeline stops. {_NEW_TABLE}"
        yield Effect.of(new, what, changed=changed, outcome=Outcome.STOPS, is_dangerous=True)
        return
    found = Landed.of(_with_key(old, before), _with_key(new, after), new)
    if KEY_VERSION in found.unfit and new.write.key is None:
        return  # of which `_of_keys` says more
    yield from found.refusals(new, changed, new.topic.value.schema or ())
    if found.stops:
        return
    for name in found.gone:
        if name in new.write.order_columns:
            what = f"no record has the order column {name} any more: all records are rejected (order_missing)"
            yield Effect.of(new, what, changed=changed, is_dangerous=True)
    also = "" if isinstance(new.topic.value, Avro) else ", also in those of waiting records that have it"
    why = "the schema has it no more" if new.topic.value.schema else "it is declared no more"
    stays = [f"column {name} stays, and is null in new rows{also}: {why}" for name in found.gone]
    for line in (*found.lines, *stays):
        yield Effect.of(new, line, changed=changed)
    if not (found.lines or stays or found.unfit):
        what = "the schema changes, and no column does"
        yield Effect.of(new, what, changed=changed, outcome=Outcome.UPKEEP)


@dataclass(frozen=True, slots=True)
class _Keys:
    """The files of a topic's keys: their row types, and whether each is one value, no record of fields."""

    versions: Versions
    single: tuple[bool, ...]

    @classmethod
    def of(cls, pipeline: Pipeline) -> _Keys:
        topic, files = pipeline.topic, pipeline.topic.key.schema or ()
        if topic.key.columns:
            return cls(((0, row_meaning(declared_type(topic.key.columns))),), (False,))
        connect_types = pipeline.is_change_data
        rows = declared_rows(pipeline.topic, keys=True, connect_types=connect_types)
        return cls(tuple(enumerate(rows)), tuple(map(is_single_value, files)))

    @property
    def row(self) -> Struct:
        """The fields of all versions of the first one's shape: that of the table's column."""
        return merge([version for version in self.versions if self.single[version[0]] is self.single[0]]).type


def _of_keys(new: Pipeline, old_keys: _Keys, keys: _Keys, changed: str) -> Iterator[Effect]:
    if old_keys.single[0] is not keys.single[0]:
        shapes = ("one value", "a record") if keys.single[0] else ("a record", "one value")
        what = f"keys are {shapes[0]} now, and their column was made for {shapes[1]}: the pipeline stops. {_NEW_TABLE}"
        yield Effect.of(new, what, changed=changed, outcome=Outcome.STOPS, is_dangerous=True)
        return
    is_columns = new.write.has_key and new.write.key is None and not keys.single[0]
    if is_columns and not _is_same_key(old_keys.row, keys.row):
        what = f"the key is {_listed(keys.row)} instead of {_listed(old_keys.row)}, and a table keeps its key"
        what += f": the pipeline stops. {_NEW_TABLE} for the new key"
        yield Effect.of(new, what, changed=changed, outcome=Outcome.STOPS, is_dangerous=True)
        return
    shaped = [version for version in keys.versions if keys.single[version[0]] is keys.single[0]]
    found = Landed.of(old_keys.versions, shaped, new)
    yield from found.refusals(new, changed, new.topic.key.schema or ())
    if found.stops:
        return
    path = ("_kafka_key",) if new.table.metadata_columns is MetadataColumns.FLAT else ("_kafka", "key")
    stays = [
        f"column {'.'.join((*path, name))} stays, and is null in new rows: no key has it any more"
        for name in found.gone
    ]
    for line in (*found.under(path, at=1 if keys.single[0] else 0), *stays):
        yield Effect.of(new, line, changed=changed)


@dataclass(frozen=True, slots=True)
class Landed:
    """New versions of rows in the columns that old ones made; `needed` are changes that the old ones need themselves."""

    table: Struct
    versions: Versions
    landing: Landing
    needed: frozenset[str]

    @classmethod
    def of(cls, before: Versions, after: Versions, pipeline: Pipeline, *, kept: Versions = ()) -> Landed:
        """Land the versions `after`, and with them those of `before` that are `kept`, which say nothing of lost columns."""
        made = merge(before).type
        table = plain(made)
        assert isinstance(table, Struct)
        evolution = pipeline.table.schema_evolution
        may_add, may_widen = evolution is not SchemaEvolution.FREEZE, evolution is SchemaEvolution.WIDEN
        found = landing(table, [*kept, *after], may_add=may_add, may_widen=may_widen)
        return cls(table, tuple(after), found, frozenset(map(str, changes(table, made))))

    @property
    def unfit(self) -> Mapping[int, IncompatibleSchema]:
        """The versions that cannot land, each with the reason."""
        return self.landing.incompatible

    @property
    def stops(self) -> bool:
        """True if nothing can land: no version of the values fits, or the key's does not."""
        values = {number for number, _ in self.versions if number != KEY_VERSION}
        return KEY_VERSION in self.unfit or (bool(self.unfit) and values <= self.unfit.keys())

    @property
    def lines(self) -> list[str]:
        """The changes of columns, in words."""
        return self.under((), at=0)

    def under(self, path: tuple[str, ...], *, at: int) -> list[str]:
        """Return the changes of columns, in words; the first `at` steps of their paths are `path` in the table."""
        found = [change for change in self.landing.changes if str(change) not in self.needed]
        return [str(replace(change, path=(*path, *change.path[at:]))) for change in found]

    @property
    def gone(self) -> list[str]:
        """The columns that no version has."""
        fit = merge([version for version in self.versions if version[0] not in self.unfit]).type
        kept = {column.name for column in columns_of(self.table, fit, top=True).values()}
        return [column.name for column in self.table.fields if column.name not in kept]

    def refusals(self, pipeline: Pipeline, changed: str, files: Sequence[SchemaFile]) -> Iterator[Effect]:
        """Yield the versions that cannot land; one effect if nothing can."""
        evolution = f"under schema_evolution={pipeline.table.schema_evolution}"
        for number, problem in self.unfit.items():
            if self.stops:
                what = f"the schema does not fit the table {evolution}: {problem.where}: {problem.what}. "
                what += f"Nothing can land, so the pipeline stops (IncompatibleSchema). {_NEW_TABLE}, or keep the field"
                yield Effect.of(pipeline, what, changed=changed, outcome=Outcome.STOPS, is_dangerous=True)
                return
            what = f"{files[number].file} does not fit the table {evolution}: {problem.where}: {problem.what}. "
            what += "Records of it are rejected (incompatible_schema)"
            yield Effect.of(pipeline, what, changed=changed, is_dangerous=True)


def _rows(pipeline: Pipeline) -> Versions:
    """Return the row types of what a pipeline declares; of events of change data those of the row."""
    has_envelope, columns = pipeline.is_change_data, pipeline.topic.value.columns
    if columns:
        rows: tuple[Struct, ...] = (
            with_unknown(row_meaning(declared_type(columns)), keeps=pipeline.topic.value.keeps_unknown),
        )
    else:
        rows = declared_rows(pipeline.topic, connect_types=has_envelope)
    if has_envelope:
        rows = tuple(map(_unwrapped, rows))
    return tuple(enumerate(map(with_variants, rows) if pipeline.table.has_variants else rows))


def _with_key(pipeline: Pipeline, values: Versions) -> Versions:
    """Return the versions with the fields of the record's key, as far as they are columns of a table that has a key."""
    if not pipeline.write.has_key or not (pipeline.topic.key.schema or pipeline.topic.key.columns):
        return values
    keys, names = _Keys.of(pipeline), pipeline.write.key
    if keys.single[0]:
        return values
    if names is None:
        return ((KEY_VERSION, keys.row), *values)
    also = key_version(names, merge(values).type, keys.row)
    return (*values, (KEY_VERSION, also)) if also.fields else values


def _unwrapped(event: Struct) -> Struct:
    inner = next((field.type for field in event.fields if field.source == _ROW), None)
    if isinstance(inner, Struct):
        return inner
    return Struct(tuple(field for field in event.fields if field.source not in _MARKS))


def _is_same_key(before: Struct, after: Struct) -> bool:
    """Return whether the fields of a key are the columns that they were, no more and no less."""
    found = columns_of(before, after, top=True)
    return len(found) == len(after.fields) == len(before.fields)


def _listed(row: Struct) -> str:
    return ", ".join(sorted(field.name for field in row.fields)) or "nothing"
