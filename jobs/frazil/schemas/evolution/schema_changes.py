"""Schema changes as values: what a table's schema lacks for the rows that are to land in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field

from frazil.declaration.checks.column_rules import is_reserved
from frazil.schemas.evolution.column_names import folded, suffixed
from frazil.schemas.evolution.field_ids import is_other, is_union, with_ids
from frazil.schemas.evolution.merge import brief, incompatible, type_names
from frazil.schemas.types import (
    Decimal,
    Field,
    ListOf,
    MapOf,
    Primitive,
    Scalar,
    Struct,
    Type,
    becomes,
    holds,
    optional,
)

Path = tuple[str, ...]
"""Column names from the row down, in lists and maps Iceberg's `element`, `key` and `value`; as before any change."""


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new optional column, after those of its struct; `path` ends with its name, and `ids` are those of `Field`."""

    path: Path
    type: Type
    doc: str = ""
    ids: tuple[str, ...] = dataclass_field(default=(), compare=False)

    def __str__(self) -> str:
        return f"column {'.'.join(self.path)} added, {self.type}"


@dataclass(frozen=True, slots=True)
class WidenColumn:
    """A column's type becomes one that holds all of its old values."""

    path: Path
    old: Scalar
    new: Scalar

    def __str__(self) -> str:
        return f"column {'.'.join(self.path)} widened from {self.old} to {self.new}"


@dataclass(frozen=True, slots=True)
class RelaxColumn:
    """A required column becomes optional."""

    path: Path

    def __str__(self) -> str:
        return f"column {'.'.join(self.path)} made optional"


@dataclass(frozen=True, slots=True)
class CommentColumn:
    """A column gets another comment."""

    path: Path
    doc: str

    def __str__(self) -> str:
        return f"column {'.'.join(self.path)} commented"


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """A column gets another name; its field id, and so its data, stays."""

    path: Path
    name: str

    def __str__(self) -> str:
        return f"column {'.'.join(self.path)} renamed to {self.name}"


@dataclass(frozen=True, slots=True)
class IdentifyColumn:
    """A column gets further ids, those of `Field`: more fields of writers are this column, whatever their names are."""

    path: Path
    ids: tuple[str, ...]

    def __str__(self) -> str:
        return f"column {'.'.join(self.path)} is the field {', '.join(self.ids)}"


Change = AddColumn | WidenColumn | RelaxColumn | CommentColumn | RenameColumn | IdentifyColumn


def changes(table: Struct, rows: Struct, *, may_add: bool = True, may_widen: bool = True) -> tuple[Change, ...]:
    """Return the changes that `table` needs before `rows` (a merged row type) can land; none if they are all made.

    No change depends on another: every path is the table's as it is now, and renames come last, the deepest first.
    `may_add` allows new columns, and with them renames, comments and ids; `may_widen` allows wider types and optional
    columns. What is not allowed, or forbidden by Iceberg, raises `IncompatibleSchema` with the path; but a rename or a
    comment that is not allowed is omitted, as rows land without it. A column is never narrowed.
    """
    found = tuple(_structs(table, rows, (), _Allowed(add=may_add, widen=may_widen)))
    renames = sorted((c for c in found if isinstance(c, RenameColumn)), key=lambda c: -len(c.path))
    return (*(c for c in found if not isinstance(c, RenameColumn)), *renames)


def applied(table: Struct, made: Sequence[Change]) -> Struct:
    """Return the table's schema after these changes."""
    for change in made:
        table = _in_struct(table, change.path, change)
    return table


def columns_of(table: Struct, rows: Struct, *, top: bool) -> dict[str, Field]:
    """Return field of the rows -> the table's column for it: of its id, its name with a hash, its name, else an earlier name.

    `top` is the row itself: no field of it was ever a column that belongs to Frazil, whatever an alias says.
    """
    free = {column.name: column for column in table.fields}
    by_id = {each: column.name for column in table.fields for each in column.ids}
    found: dict[str, Field] = {}
    for field in rows.fields:
        name = next((by_id[each] for each in field.ids if each in by_id), None)
        if name in free:
            found[field.name] = free.pop(name)
    for field in rows.fields:  # of names that fold alike, the later ones have a hash
        hashed = suffixed(field.source)
        if field.name not in found and hashed in free and not is_other(free[hashed], field):
            found[field.name] = free.pop(hashed)
    for field in rows.fields:
        if field.name not in found and field.name in free and not is_other(free[field.name], field):
            found[field.name] = free.pop(field.name)
    for name_of in (suffixed, folded):  # an earlier name that seen a collision is recognised by its suffix
        for field in rows.fields:
            former = (*reversed(field.aliases), field.source)
            names = [name for name in map(name_of, former) if not (top and is_reserved(name))]
            earlier = next((name for name in names if name in free and not is_other(free[name], field)), None)
            if field.name not in found and earlier:
                found[field.name] = free.pop(earlier)
    return found


@dataclass(frozen=True, slots=True)
class _Allowed:
    add: bool
    widen: bool


def _structs(table: Struct, rows: Struct, path: Path, allowed: _Allowed) -> Iterator[Change]:
    columns = columns_of(table, rows, top=not path)
    for field in rows.fields:
        column = columns.get(field.name)
        if column is None:
            if not allowed.add:
                do = 'Take the field back, or declare schema_evolution="add_columns"'
                raise incompatible((*path, field.name), "the table has no such column, and none may be added", do)
            yield AddColumn((*path, field.name), plain(field.type), field.doc, field.ids)
            continue
        here = (*path, column.name)
        if column.required and not field.required:
            yield _relaxed(here, allowed)
        yield from _types(column.type, field.type, here, allowed)
        if field.doc and field.doc != column.doc and allowed.add:
            yield CommentColumn(here, field.doc)
        if with_ids(column, field.ids) is not column and allowed.add:
            yield IdentifyColumn(here, tuple(each for each in field.ids if each not in column.ids))
        if field.name != column.name and allowed.add:
            yield RenameColumn(here, field.name)
    seen = {column.name for column in columns.values()}
    for column in table.fields:
        if column.required and column.name not in seen and not (not path and is_reserved(column.name)):
            yield _relaxed((*path, column.name), allowed)


def _relaxed(path: Path, allowed: _Allowed) -> RelaxColumn:
    if not allowed.widen:
        raise incompatible(path, "the column is required, records may lack it, and it may not be made optional")
    return RelaxColumn(path)


def _types(column: Type, value: Type, path: Path, allowed: _Allowed) -> Iterator[Change]:
    if is_union(value) and not is_union(column):
        raise incompatible(path, f"the column holds one type, and the field may be {type_names(value)} now")
    if is_union(column) and not is_union(value):
        raise incompatible(path, f"the column is {brief(column)}, and the field is {type_names(value)}")
    match column, value:
        case Struct(), Struct():
            yield from _structs(column, value, path, allowed)
        case ListOf(), ListOf():
            if column.element_required and not value.element_required:
                yield _relaxed((*path, "element"), allowed)
            yield from _types(column.element, value.element, (*path, "element"), allowed)
        case MapOf(), MapOf():
            if column.key != value.key:
                raise incompatible((*path, "key"), "a map's key cannot change")
            if column.value_required and not value.value_required:
                yield _relaxed((*path, "value"), allowed)
            yield from _types(column.value, value.value, (*path, "value"), allowed)
        case ((Primitive() | Decimal()), (Primitive() | Decimal())):
            if holds(column, value):
                return
            if not becomes(column, value):
                raise incompatible(path, f"{column} cannot become {value}")
            if not allowed.widen:
                raise incompatible(path, f"{column} may not be widened to {value}")
            yield WidenColumn(path, column, value)
        case _:
            raise incompatible(path, f"{brief(column)} cannot become {brief(value)}")


def renames(made: Sequence[Change]) -> dict[str, str]:
    """Return the new name of each column that is renamed, by its name before; without fields inside columns."""
    return {
        change.path[0]: change.name for change in made if isinstance(change, RenameColumn) and len(change.path) == 1
    }


def plain(of: Type) -> Type:
    """Return the type as a table has it: names, types, comments and ids, everything optional."""
    return optional(of, lambda field, inner: Field(field.name, inner, doc=field.doc, ids=field.ids))


def _in_struct(struct: Struct, path: Path, change: Change) -> Struct:
    name, rest = path[0], path[1:]
    if isinstance(change, AddColumn) and not rest:
        return Struct((*struct.fields, Field(name, change.type, doc=change.doc, ids=change.ids)))
    return Struct(tuple(_in_field(f, rest, change) if f.name == name else f for f in struct.fields))


def _in_field(field: Field, rest: Path, change: Change) -> Field:
    if rest:
        return replace(field, type=_in_type(field.type, rest, change))
    match change:
        case WidenColumn(new=new):
            return replace(field, type=new)
        case RelaxColumn():
            return replace(field, required=False)
        case CommentColumn(doc=doc):
            return replace(field, doc=doc)
        case IdentifyColumn(ids=ids):
            return with_ids(field, ids)
        case RenameColumn(name=name):
            return replace(field, name=name, source=name if field.source == field.name else field.source)
    return field


def _in_type(of: Type, path: Path, change: Change) -> Type:
    if isinstance(of, Struct):
        return _in_struct(of, path, change)
    match of, path[0]:
        case ListOf(element, required), "element":
            inner = _in_field(Field("element", element, required), path[1:], change)
            return ListOf(inner.type, inner.required)
        case MapOf(key, value, required), "value":
            inner = _in_field(Field("value", value, required), path[1:], change)
            return MapOf(key, inner.type, inner.required)
    return of
