"""The notes of a table on masked fields: the columns that have their values, and the names and numbers that the fields had.

A schema may say no more what a field was. So each column with masked values gets values with the same mask only, and a field that
once was a masked one stays masked where it has no column: dead letters show it, too.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from frazil.declaration import Pipeline
from frazil.declaration.envelopes import BEFORE_COLUMN
from frazil.decode.shape.row_masks import of_fields
from frazil.decode.shape.selection import Selection
from frazil.errors import InvalidInput
from frazil.job.context import JobContext
from frazil.lake.layout import Layout
from frazil.lake.ledger.next_offsets import canonical
from frazil.lake.tables import change_layout
from frazil.schemas.evolution.column_names import folded
from frazil.schemas.evolution.schema_changes import columns_of
from frazil.schemas.types import Field, ListOf, MapOf, Struct, Type, full_path

MASKED = "frazil.masked"
"""The table property with the masks of each column by its id, and the names and ids of each masked field by the parts of its path.

A mask is named by its path in the declaration.
"""
Path = tuple[str, ...]


class Notes(NamedTuple):
    """The content of the property."""

    columns: dict[str, list[str]]
    fields: dict[str, list[list[str]]]

    @classmethod
    def of(cls, actual: Layout) -> Notes:
        """Return what a table has noted."""
        return cls(**json.loads(actual.properties.get(MASKED, '{"columns": {}, "fields": {}}')))


def check_notes(pipeline: Pipeline, actual: Layout, made: Selection, refused: Sequence[Struct] = ()) -> Notes:
    """Return the notes of the table with those of what is to land. `refused` are versions that do not, and may rename fields.

    Raises `InvalidInput` if a field that was a masked one has no mask, or if values without their mask would land in a column.
    """
    noted, masks, hidden = Notes.of(actual), of_fields(pipeline.shape.masks), _hidden(pipeline, made.source)
    where, fields, columns = f"pipeline {pipeline.name}, shape.mask", dict(noted.fields), dict(noted.columns)
    for path in masks:
        found = fields.get(path, [[name] for name in path.split(".")])
        for version in refused:
            found = _known(version, found)
        for here, of in _fields_of(made.source, found):
            if not _masks_of(here, hidden):
                has_alias = len(of) == 1 and of[0] is not None and not of[0].ids  # a number has none
                name, more = ".".join(here), f", or give it the alias {path} in its schema" if has_alias else ""
                what = f"{name} was {path}, which is masked, and the schema does not say so any more"
                raise InvalidInput(what, where=where, do=f"Mask {name}, too{more}")
        fields[path] = _known(made.source, found)
    for column, paths, is_computed in _places(actual.row, made):
        number, name = str(actual.columns.get(column, "")), ".".join(paths[0])
        now = sorted({one for path in paths for one in _masks_of(path, hidden, is_computed=is_computed)})
        for path in columns.get(number, ()):
            if path in masks and masks[path] not in [masks[one] for one in now]:
                what = f"{name} lands in the column {column}, which has values that the mask of {path} made"
                do = f"Give {name} the same mask, or select it as another column"
                raise InvalidInput(what, where=where, do=do)
        if now and number:
            columns[number] = now
    return Notes(columns, fields)


def note(pipeline: Pipeline, job: JobContext, actual: Layout, notes: Notes) -> None:
    """Have the table remember these notes."""
    if (text := canonical(notes._asdict())) != actual.properties.get(MASKED):
        change_layout(job.iceberg, pipeline.table.identifier, (), {MASKED: text}, (), False)


def _hidden(pipeline: Pipeline, source: Struct) -> dict[Path, str]:
    """Return the masked fields of a row, by the masks that they have: those of the row before a change, too."""
    masks = [(path.split("."), path) for path in of_fields(pipeline.shape.masks)]
    found = dict(_masked(source, (), masks))
    for each in source.fields:
        if pipeline.envelope is not None and pipeline.envelope.has_before and each.source == BEFORE_COLUMN:
            found |= _masked(each.type, (each.name,), masks)
    return found


def _masked(of: Type, path: Path, masks: Sequence[tuple[list[str], str]]) -> Iterator[tuple[Path, str]]:
    for name, names, inner in _inside(of):
        some = [(parts[1:], mask) for parts, mask in masks if parts[0] in names]
        if own := [mask for parts, mask in some if not parts]:
            yield (*path, name), own[0]
        elif some:
            yield from _masked(inner, (*path, name), some)


def _inside(of: Type) -> Iterator[tuple[str, set[str], Type]]:
    """Yield what is in a type: its name, all names by which masks have it, and its type."""
    match of:
        case Struct(fields):
            yield from ((each.name, {each.name, *map(folded, each.aliases)}, each.type) for each in fields)
        case ListOf(element):
            yield "element", {"element"}, element
        case MapOf(key, value):
            yield from (("key", {"key"}, key), ("value", {"value"}, value))


def _masks_of(path: Path, hidden: Mapping[Path, str], *, is_computed: bool = False) -> list[str]:
    """Return the masks of a field, or of what it is in; of what is in it, too, if something is computed of it."""
    found = [hidden[path[:n]] for n in range(1, len(path) + 1) if path[:n] in hidden]
    return found + [mask for one, mask in hidden.items() if is_computed and one[: len(path)] == path]


def _fields_of(
    of: Type, known: Sequence[Collection[str]], path: Path = (), of_path: tuple[Field | None, ...] = ()
) -> Iterator[tuple[Path, tuple[Field | None, ...]]]:
    """Yield the fields that have, or had, known names and ids: the path of each, and the fields on it."""
    if not known:
        yield path, of_path
        return
    fields = {each.name: each for each in of.fields} if isinstance(of, Struct) else {}
    for name, names, inner in _inside(of):
        field = fields.get(name)
        ids = {folded(field.source), *field.ids} if field is not None else set[str]()
        if not (names | ids).isdisjoint(known[0]):
            yield from _fields_of(inner, known[1:], (*path, name), (*of_path, field))


def _known(row: Struct, known: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the known names and ids of a masked field with those that it has in a row."""
    found = [set(names) for names in known]
    for _, fields in _fields_of(row, known):
        for names, field in zip(found, fields, strict=True):
            if field is not None:
                names |= {field.name, *map(folded, (field.source, *field.aliases)), *field.ids}
    return [sorted(names) for names in found]


def _places(table: Struct, made: Selection) -> Iterator[tuple[str, Sequence[Path], bool]]:
    """Yield the columns that get values: the path of each, what it is made of, and whether that is computed."""
    columns = columns_of(table, made.row, top=True)
    for output in made.outputs:
        if (column := columns.get(output.field.name)) is None:
            continue
        if output.value is not None:
            reads = [full_path(made.source, path) for path in output.paths]
            same = ((path, reads, True) for path, _ in _leaves(column.type, column.type, (column.name,), ()))
            yield from same if reads else ()
        else:
            of = full_path(made.source, output.path)
            for path, source in _leaves(column.type, output.field.type, (column.name,), of):
                yield path, (source,), False


def _leaves(column: Type, value: Type, path: Path, source: Path) -> Iterator[tuple[str, Path]]:
    """Yield what has nothing in it: its path in a column, and that in the value."""
    match column, value:
        case Struct(), Struct(fields):
            columns = columns_of(column, value, top=False)
            for each in fields:
                if (inner := columns.get(each.name)) is not None:
                    yield from _leaves(inner.type, each.type, (*path, inner.name), (*source, each.name))
        case ListOf(of), ListOf(element):
            yield from _leaves(of, element, (*path, "element"), (*source, "element"))
        case MapOf(key, of), MapOf(inner_key, inner):
            yield from _leaves(key, inner_key, (*path, "key"), (*source, "key"))
            yield from _leaves(of, inner, (*path, "value"), (*source, "value"))
        case _:
            yield ".".join(path), source
