"""A table and the versions of a subject brought together: what must change, what lands where, who cannot land."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from frazil.declaration.checks.column_rules import is_reserved
from frazil.errors import IncompatibleSchema
from frazil.schemas.evolution.column_names import claimed, folded, suffixed
from frazil.schemas.evolution.field_ids import as_union, is_member, is_union, with_ids
from frazil.schemas.evolution.merge import Merged, adopted, merge, same_field, with_version
from frazil.schemas.evolution.schema_changes import Change, applied, changes, columns_of
from frazil.schemas.types import Field, ListOf, MapOf, Struct, Type, along, inside


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """The changes of the table, the decoders' target after these, and the versions that cannot land, by schema id."""

    changes: tuple[Change, ...]
    target: Struct
    incompatible: Mapping[int, IncompatibleSchema]


def landing(
    table: Struct, versions: Sequence[tuple[int, Struct]], *, may_add: bool = True, may_widen: bool = True
) -> Landing:
    """Bring the versions of a subject, oldest first, into a table.

    A version that does not fit the table and the versions before it, under these flags, is omitted and listed in
    `incompatible`; it changes nothing.
    """
    if _has_unions(table):
        merged_type = merge(versions).type
        versions = [(number, as_members(table, version, merged_type)) for number, version in versions]
    try:
        return _landing(table, merge(versions), may_add=may_add, may_widen=may_widen)
    except IncompatibleSchema:
        pass
    # One by one, an earlier version is not known to have the column that a later one renamed.
    renamed = _named_now(table, [version for _, version in versions], top=True)
    versions = [(number, version) for (number, _), version in zip(versions, renamed, strict=True)]
    merged: Struct | None = None
    unfit: dict[int, IncompatibleSchema] = {}
    for schema_id, version in versions:
        try:
            attempt = with_version(merged, version)
            if attempt is not merged:
                changes(table, named_as(table, attempt), may_add=may_add, may_widen=may_widen)
            merged = attempt
        except IncompatibleSchema as problem:
            unfit[schema_id] = problem
    fit = Merged(type=merged or Struct(()), incompatible=unfit)
    return _landing(table, fit, may_add=may_add, may_widen=may_widen)


def names_since(names: Iterable[str], versions: Sequence[Struct]) -> list[str]:
    """Return these names of fields, and all those by which versions (row types not yet folded) rename them."""
    found = list(dict.fromkeys(names))
    for name in found:  # grows
        later = (field.source for version in versions for field in version.fields if name in field.aliases)
        found += [one for one in dict.fromkeys(later) if one not in found]
    return found


def _named_now(table: Struct, versions: Sequence[Struct], *, top: bool) -> list[Struct]:
    """Return the versions with the names of fields that the table's columns have already, by aliases of later versions."""
    versions = _with_own_aliases(versions)
    there = {column.name: column for column in table.fields}
    by_id = {each: column for column in table.fields for each in column.ids}
    names: dict[str, str] = {}
    for version in versions:
        for field, named in zip(version.fields, adopted(version, top=top).fields, strict=True):
            names.setdefault(field.source, named.name)

    def column_of(name: str) -> Field | None:
        return there.get(names.get(name, name))

    def now(field: Field, own: Collection[str]) -> Field:
        if field.ids or column_of(field.source) is not None:
            return field
        later = names_since([field.source], versions)
        name = next((one for one in later if one not in own and column_of(one) is not None), field.source)
        return replace(field, source=name, aliases=tuple(one for one in (*later, *field.aliases) if one != name))

    found = []
    for version in versions:
        own = {field.source for field in version.fields}
        found.append([now(field, own) for field in version.fields])
    places: dict[str, list[tuple[int, int]]] = {}
    for i, fields in enumerate(found):
        for j, field in enumerate(fields):
            column = next((by_id[one] for one in field.ids if one in by_id), None) or column_of(field.source)
            if column is not None:
                places.setdefault(column.name, []).append((i, j))
    for name, at in places.items():
        types = _inner_named_now(there[name].type, [found[i][j].type for i, j in at])
        for (i, j), kind in zip(at, types, strict=True):
            found[i][j] = replace(found[i][j], type=kind)
    return [replace(version, fields=tuple(fields)) for version, fields in zip(versions, found, strict=True)]


def _with_own_aliases(versions: Sequence[Struct]) -> list[Struct]:
    """Return the versions without aliases for a field that an earlier one has next to the field: that is another column."""
    found, names = list[Struct](), list[set[str]]()
    for version in versions:
        fields = (
            replace(f, aliases=tuple(a for a in f.aliases if not any({f.source, a} <= before for before in names)))
            for f in version.fields
        )
        found.append(replace(version, fields=tuple(fields)))
        names.append({field.source for field in version.fields})
    return found


def _inner_named_now(column: Type, types: list[Type]) -> list[Type]:
    """Return the types that one column has in several versions, as `_named_now` does."""
    alike = [n for n, of in enumerate(types) if type(of) is type(column) and is_union(of) is is_union(column)]
    some: Any = [types[number] for number in alike]
    match column:
        case Struct():
            some = _named_now(column, some, top=False)
        case ListOf(element):
            elements = _inner_named_now(element, [of.element for of in some])
            some = [replace(of, element=kind) for of, kind in zip(some, elements, strict=True)]
        case MapOf(_, value):
            values = _inner_named_now(value, [of.value for of in some])
            some = [replace(of, value=kind) for of, kind in zip(some, values, strict=True)]
    found = dict(zip(alike, some, strict=True))
    return [found.get(number, of) for number, of in enumerate(types)]


def _landing(table: Struct, merged: Merged, *, may_add: bool, may_widen: bool) -> Landing:
    rows = named_as(table, merged.type)
    made = changes(table, rows, may_add=may_add, may_widen=may_widen)
    return Landing(changes=made, target=target(applied(table, made), rows), incompatible=merged.incompatible)


def as_members(table: Struct, version: Struct, merged: Struct, *, top: bool = True) -> Struct:
    """Return the version (a row type not yet folded) with a type alone as a member where the table's column is a union.

    `merged` is the type of all versions, whose names say which column a field is: names that fold alike are several.
    """
    columns = columns_of(table, merged, top=top)
    fields: list[Field] = []
    for field in version.fields:
        known = same_field(field, merged.fields)
        column = columns.get(known.name) if known is not None else None
        if known is not None and column is not None:
            if is_union(column.type) and not is_union(field.type):
                field = replace(field, type=as_union(field.type, as_json=field.as_json), as_json=False)
            field = replace(field, type=_as_members(column.type, field.type, known.type))
        fields.append(field)
    return Struct(tuple(fields), origins=version.origins)


def _as_members(column: Type, value: Type, merged: Type) -> Type:
    if is_union(column):
        value, merged = as_union(value), as_union(merged)
    match column, value, merged:
        case Struct(), Struct(), Struct():
            return replace(value, fields=as_members(column, value, merged, top=False).fields)
        case ListOf(of), ListOf(element), ListOf(known):
            return replace(value, element=_as_members(of, element, known))
        case MapOf(_, of), MapOf(_, element), MapOf(_, known):
            return replace(value, value=_as_members(of, element, known))
    return value


def _has_unions(of: Type) -> bool:
    return is_union(of) or any(map(_has_unions, inside(of)))


def named_as(table: Struct, rows: Struct, *, top: bool = True) -> Struct:
    """Return the rows (a merged row type) with the table's names for the fields that their ids, or the hash in a name, identify.

    A field does not get the name of a column that is another field, nor one that is `taken`.
    """
    columns = columns_of(table, rows, top=top)
    taken = {column.name for column in table.fields} | {field.name for field in rows.fields} | table.taken.keys()
    fields: list[Field] = []
    for field in rows.fields:
        column = columns.get(field.name)
        if column is not None:
            own_names = suffixed(field.source), folded(field.source)
            is_its = column.name in own_names or not set(column.ids).isdisjoint(field.ids)
            is_its |= table.taken.get(field.name, column.name) != column.name
            name = column.name if is_its else field.name
            field = replace(field, name=name, type=_named_as(column.type, field.type))
        elif field.name in table.taken or any(column.name == field.name for column in table.fields):
            own = field.ids[0] if is_member(field) else field.source
            field = replace(field, name=claimed(own, taken, top=top))
            taken.add(field.name)
        fields.append(field)
    return Struct(tuple(fields), origins=rows.origins)


def _named_as(column: Type, value: Type) -> Type:
    if isinstance(column, Struct) and isinstance(value, Struct):
        return named_as(column, value, top=False)
    return along(value, column, lambda inner, held: _named_as(held, inner))


def target(table: Struct, rows: Struct) -> Struct:
    """Return the table's row type, its fields annotated with where in the rows (a merged row type) they come from.

    Metadata columns are omitted; so is a field of the rows without a column. A column that the rows lack stays, and is null in
    every row.
    """
    annotated = _annotated(table, rows, top=True)
    return Struct(tuple(field for field in annotated.fields if not is_reserved(field.name)))


def _annotated(table: Struct, rows: Struct, *, top: bool = False) -> Struct:
    columns = columns_of(table, rows, top=top)
    sources = {columns[field.name].name: field for field in rows.fields if field.name in columns}
    return Struct(tuple(_landed(column, sources.get(column.name)) for column in table.fields))


def _landed(column: Field, field: Field | None) -> Field:
    if field is None:
        return column
    return replace(
        column,
        type=_inner(column.type, field.type),
        source=field.source,
        aliases=field.aliases,
        as_json=field.as_json,
        has_own_scale=field.has_own_scale,
        ids=with_ids(column, field.ids).ids,
    )


def _inner(column: Type, value: Type) -> Type:
    if isinstance(column, Struct) and isinstance(value, Struct):
        return _annotated(column, value)
    return along(column, value, _inner)
