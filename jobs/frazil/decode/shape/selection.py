"""The declared columns of a table, typed against the rows that its topic has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from frazil.declaration import Pipeline
from frazil.declaration.checks.select_list import Selected, select_list
from frazil.declaration.checks.sql_expressions import RowExpression
from frazil.declaration.documents.to_json import to_json
from frazil.declaration.envelopes import BEFORE_COLUMN, added_columns
from frazil.declaration.shape import Hmac
from frazil.decode.shape.expression_types import typed_together
from frazil.decode.shape.row_masks import lost, masked, masks_inside, named_now, of_fields
from frazil.decode.spark_types import row_type, spark_struct
from frazil.errors import InvalidInput
from frazil.schemas.evolution.column_names import folded
from frazil.schemas.types import Field, Struct, full_path

_NO_COLUMNS = Struct(())
M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the table, and what it is of: the field at a `path` of the source's row, or the `value` of an expression.

    `is_kept`: where a change omits the value, the row keeps the one that it has, which was made in the same way.
    """

    field: Field
    path: tuple[str, ...] = ()
    value: RowExpression | None = None
    is_kept: bool = True

    @property
    def column(self) -> str | None:
        """The source's column, if the output is nothing but that."""
        return self.path[0] if len(self.path) == 1 else None

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The columns of the source that it reads, each with the fields in it."""
        return (self.path,) if self.value is None else self.value.paths

    @property
    def text(self) -> str:
        """The output as it is declared."""
        return f"{'.'.join(self.path) if self.value is None else self.value.text} as {self.field.name}"

    def is_called(self, names: Collection[str]) -> bool:
        """Return whether the column has, or had, one of these names."""
        return not {self.field.name, *map(folded, self.field.aliases)}.isdisjoint(names)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of the source that it reads."""
        return self.path[:1] if self.value is None else self.value.columns


@dataclass(frozen=True, slots=True)
class Selection:
    """The columns of a table, of rows of the type `source`, whose type is `masked` after masks."""

    source: Struct
    masked: Struct
    outputs: tuple[Output, ...]

    @property
    def row(self) -> Struct:
        """The type of the rows that land."""
        return Struct(tuple(output.field for output in self.outputs))

    def columns_behind(self, names: Collection[str]) -> set[str]:
        """Return the columns of the source that these columns of the table read."""
        return {column for output in self.outputs if output.field.name in names for column in output.reads}

    def masks_of(self, names: Collection[str], masks: Mapping[str, M]) -> list[tuple[Output, str, M]]:
        """Return which of the masks are of the table's columns that have, or had, these names; with the path of each."""
        now = named_now(self.source, masks).items()
        return [
            (output, path, mask)
            for output in self.outputs
            if output.is_called(names)
            for path, mask in now
            if any(_is_inside(full_path(self.source, read), path.split(".")) for read in output.paths)
        ]


def selection(
    pipeline: Pipeline,
    spark: SparkSession,
    source: Struct,
    key: Struct | None,
    table: Struct = _NO_COLUMNS,
    had: Sequence[Mapping[str, Any]] = (),
) -> Selection:
    """Return the declared columns of rows of the type `source`. Expressions may read the fields of the record's `key`, too.

    `had` are the shapes of the rows of an existing `table`, the first one first. A mask of a field that the rows of the first one
    had, or of a column, does nothing. Raises `InvalidInput` if the columns or the masks do not fit these rows.
    """
    where, added = f"pipeline {pipeline.name}, shape.select", added_columns(pipeline.envelope)
    hidden = _masked(pipeline, source, table, (had[0].get("mask") or {}) if had else {})
    own = tuple(Output(field, (field.name,)) for field in hidden.fields if field.name in added)
    source_row = Struct(tuple(field for field in hidden.fields if field.name not in added))
    row = spark_struct(readable(source_row, key))
    outputs: list[Output] = []
    for one in pipeline.shape.selected or select_list("*"):
        outputs += _outputs(source_row, row, one, where)
    outputs = _typed(spark, row, outputs, where)
    names = [output.field.name for output in outputs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        do = f"Write * except ({twice}), or list the fields of a struct, and give one of both another name"
        raise InvalidInput(f"{twice} is selected twice", where=where, do=do)
    of_key = {field.name for field in key.fields} if key is not None else set()
    for output in outputs:
        name = output.field.name
        if name in of_key and output.column != name:
            what = f"{name} is a column of the record's key, and select gives it another value"
            raise InvalidInput(what, where=where, do="Give it another name")
    now = to_json(pipeline.shape)
    for number, output in enumerate(outputs):
        is_same = all(_is_selected_so(output, source, shape, now) for shape in had)
        if output.is_called(pipeline.write.key or ()) and not is_same:
            said = f"{output.field.name} is a column of the key, and earlier rows made it from something else"
            do = "Select it as before, of a renamed field with its alias in the schema, or name another table and delete this one"
            raise InvalidInput(said, where=where, do=do)
        outputs[number] = replace(output, is_kept=is_same and all(_is_masked_so(output, shape, now) for shape in had))
    made = Selection(source, hidden, (*outputs, *own))
    _check_masks(pipeline, made)
    return made


def _is_masked_so(output: Output, shape: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Return whether an earlier shape and the present one have the same masks of a column."""
    had, has = (
        {path: mask for path, mask in (one.get("mask") or {}).items() if _is_inside(output.path, path.split("."))}
        for one in (shape, now)
    )
    return had == has


def _is_selected_so(output: Output, source: Struct, shape: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Return whether an earlier shape and the present one make a column of the same."""
    if shape.get("select") == now.get("select"):
        return True
    name = output.field.name
    for one in select_list(shape.get("select") or "*"):
        if one.name not in ("", name) or name in one.excepted:
            continue
        if one.value is None or output.value is None:
            path = (*(one.value.path if one.value is not None else ()), *(() if one.name else (name,)))
            if output.value is None and ".".join(output.path) in named_now(source, {".".join(path): None}):
                return True
        elif one.value.text == output.value.text:
            return True
    return False


def _masked(pipeline: Pipeline, source: Struct, table: Struct, first: Collection[str]) -> Struct:
    """Return the row type after the declared masks: of the row before a change, too."""
    where, declared = f"pipeline {pipeline.name}, shape.mask", of_fields(pipeline.shape.masks)
    gone = lost(source, table, declared, first)
    declared = {path: mask for path, mask in declared.items() if path not in gone}
    masks = named_now(source, declared)
    for path, mask in declared.items():
        (here,) = named_now(source, {path: mask})
        if masks[here] != mask:
            said = f"{path} is {here} now, and both have masks, which are not the same"
            raise InvalidInput(said, where=where, do="Declare one of them")
    names = {path.partition(".")[0] for path in masks}
    before = {each.name for each in source.fields if each.source == BEFORE_COLUMN}
    before &= {*added_columns(pipeline.envelope)}
    row = masked(Struct(tuple(each for each in source.fields if each.name not in before)), masks, where)
    types = {each.name: each for each in row.fields}
    sources = {each.source: each.name for each in source.fields if each.name in names}
    for each in source.fields if before else ():
        inner = each.type.fields if each.name in before and isinstance(each.type, Struct) else ()
        if odd := next((one for one in inner if sources.get(one.source, one.name) != one.name), None):
            what = f"{sources[odd.source]} is {odd.name} in the row before a change"
            raise InvalidInput(what, where=where, do="Mask a field whose name is no other one's in lower case")
    of_before = (
        replace(each, type=masked(each.type, masks_inside(each.type, masks), where))
        if isinstance(each.type, Struct)
        else each
        for each in source.fields
        if each.name in before
    )
    types |= {each.name: each for each in of_before}
    return Struct(tuple(types[each.name] for each in source.fields))


def check_key(pipeline: Pipeline, made: Selection, fields: Struct) -> None:
    """Raise `InvalidInput` if a masked field is one of a decoded key, too, which lands as it is."""
    names = {path.partition(".")[0] for path in named_now(made.source, of_fields(pipeline.shape.masks))}
    if shared := sorted(names & {field.name for field in fields.fields}):
        raise InvalidInput(
            f"{shared[0]} is a field of the record's key, too, which is decoded and lands as it is",
            where=f"pipeline {pipeline.name}, shape.mask",
            do="Produce the topic with another key, or with write=Append() declare keys as bytes and mask _kafka_key",
        )


def _check_masks(pipeline: Pipeline, made: Selection) -> None:
    """Raise `InvalidInput` if masks change what a key, an order or the time of an event is: the last is compared before masks."""
    where, write, event_time = f"pipeline {pipeline.name}, shape.mask", pipeline.write, pipeline.shape.event_time
    masks = of_fields(pipeline.shape.masks)
    for _, path, _ in made.masks_of(write.order_columns, masks):
        raise InvalidInput(f"{path} is masked, and orders records", where=where, do="Order by another column")
    for output, path, _ in made.masks_of((event_time.column,) if event_time is not None else (), masks):
        if output.value is not None:
            said = f"{path} is masked, and the event time {output.field.name} is an expression over it"
            raise InvalidInput(said, where=where, do="Select the time as it is")
    for _, path, mask in made.masks_of(write.key or (), masks):
        if not isinstance(mask, Hmac):
            said = f"{path} is of the key, and {mask.kind} makes several keys one"
            raise InvalidInput(said, where=where, do="Choose Hmac(…)")


def _is_inside(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether one of the paths is inside the other, or both are the same."""
    return all(a == b for a, b in zip(one, other, strict=False))


def readable(source: Struct, key: Struct | None) -> Struct:
    """Return the type of what expressions read: the source's row, and the fields of the record's key that it lacks."""
    names = {field.name for field in source.fields}
    more = (field for field in key.fields if field.name not in names) if key is not None else ()
    return Struct((*source.fields, *more))


def _outputs(source: Struct, row: T.StructType, one: Selected, where: str) -> Iterator[Output]:
    """Yield what an element of the list selects; what is computed has no type yet."""
    if one.value is None:
        columns = {field.name for field in source.fields}
        if lacking := [name for name in one.excepted if name not in columns]:
            raise _missing(f"* except ({', '.join(one.excepted)})", ", ".join(lacking), row, where)
        yield from (Output(field, (field.name,)) for field in source.fields if field.name not in one.excepted)
        return
    path = one.value.path
    found = _at(source, path) if path else None
    if not one.name:
        if found is None or not isinstance(found.type, Struct):
            raise _missing(f"{one.value.text}.*", f"struct {one.value.text}", row, where)
        for field in found.type.fields:
            yield Output(replace(field, required=False, ids=()), (*path, field.name))  # by a rename it stays the column
    elif found is not None:
        is_same = path == (one.name,)
        yield Output(found if is_same else _renamed(found, one.name), path)
    else:
        yield Output(Field(one.name, _NO_COLUMNS), value=one.value)


def _typed(spark: SparkSession, row: T.StructType, outputs: Sequence[Output], where: str) -> list[Output]:
    """Return the outputs with the types that Spark says."""
    asked = [(output.value, output.text) for output in outputs if output.value is not None]
    kinds, found = iter(typed_together(spark, row, asked, where)), list[Output]()
    for output in outputs:
        if output.value is not None:
            made = row_type(kind := next(kinds))
            if made is None:
                what = f"{output.text} is of the type {kind.simpleString()}, which no column has"
                raise InvalidInput(what, where=where, do="Write cast(… as string), or another type")
            output = replace(output, field=replace(output.field, type=made))
        found.append(output)
    return found


def _at(source: Struct, path: Sequence[str]) -> Field | None:
    """Return the field at a path of structs; None if there is none."""
    field: Field | None = None
    within: object = source
    for name in path:
        if not isinstance(within, Struct):
            return None
        field = next((each for each in within.fields if each.name == name), None)
        if field is None:
            return None
        within = field.type
    return field


def _renamed(field: Field, name: str) -> Field:
    """Return the field as another column: no other name of it says which column it is."""
    return replace(field, name=name, source=name, aliases=(), required=False, ids=())


def _missing(what: str, lacking: str, row: T.StructType, where: str) -> InvalidInput:
    columns = ", ".join(row.names)
    return InvalidInput(
        f"{what} does not fit the rows: there is no {lacking}", where=where, do=f"The columns are {columns}"
    )
