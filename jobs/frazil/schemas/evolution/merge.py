"""All versions of a subject's schema to one row type, in the order in which they were registered."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from frazil.errors import IncompatibleSchema
from frazil.schemas.evolution.column_names import claimed, folded
from frazil.schemas.evolution.field_ids import (
    MEMBER,
    SINGLE_VALUE,
    as_union,
    identified,
    is_member,
    is_other,
    is_renamed,
    is_union,
    made_of,
    origins,
    with_ids,
)
from frazil.schemas.types import Decimal, Field, ListOf, MapOf, Primitive, Struct, Type, becomes, holds, with_inside


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The row type of the versions that fit together (its names folded), and why the others do not, by schema id."""

    type: Struct
    incompatible: Mapping[int, IncompatibleSchema]


def merge(versions: Sequence[tuple[int, Struct]]) -> Merged:
    """Merge row types, oldest version first; each with its schema id.

    A version that cannot be merged with the versions before it is omitted entirely and listed in `incompatible`. New
    fields go after the existing ones; a field that a version omits is not required; the newest comment that is not
    empty wins; a field whose aliases name an earlier field renames it and keeps its place. A further version never
    changes the name that an earlier one gave, unless by such an alias. If a version has several types for a field and others
    have one of them, the field has one member for each type.
    """
    merged: Struct | None = None
    incompatible: dict[int, IncompatibleSchema] = {}
    for schema_id, version in versions:
        try:
            merged = with_version(merged, version)
        except IncompatibleSchema as problem:
            incompatible[schema_id] = problem
    return Merged(type=merged or Struct(()), incompatible=incompatible)


def with_version(merged: Struct | None, version: Struct) -> Struct:
    """Add one version to what was merged so far, None for nothing; the same object if that changes nothing.

    Raises `IncompatibleSchema`.
    """
    if merged is None:
        return replace(adopted(version, top=True), origins=version.origins)
    _check_values(merged, version)
    both = _structs(merged, version, (), top=True)
    names = tuple(dict.fromkeys((*merged.origins, *version.origins)))
    return both if names == merged.origins else replace(both, origins=names)


def _check_values(old: Struct, new: Struct) -> None:
    """Raise `IncompatibleSchema` if a record is the row in one of these, and a value in the column `value` in the other."""
    for rows, values in ((old, new), (new, old)):
        records = {name for names in rows.origins for name in names}
        for field in values.fields if SINGLE_VALUE in values.origins else ():
            held = set(type_names(field.type).split(" and ")) & records
            if field.source == "value" and held:
                what = "has its fields as columns in one version, and is the column `value` in another"
                raise incompatible((field.source,), f"{held.pop()} {what}")


def adopted(row: Struct, *, top: bool) -> Struct:
    """Return the row type with its names folded, at all levels."""
    return _structs(Struct(()), row, (), top=top, first=True)


def same_field(field: Field, among: Sequence[Field]) -> Field | None:
    """Return the one of these that a version's field is: by its id, its name, a former name, or a name before a rename."""
    if field.ids:
        if known := identified(field, among):
            return known
        among = [known for known in among if not is_other(known, field)]
    names = (field.source, *field.aliases)
    return (
        next((known for known in among if known.source == field.source), None)
        or next((known for known in among if field.source in known.aliases), None)
        or next((known for name in names for known in among if name in (known.source, *known.aliases)), None)
    )


def _structs(old: Struct, new: Struct, path: tuple[str, ...], *, top: bool, first: bool = False) -> Struct:
    """Merge both structs. Each source and alias in a struct belongs to one field only: this keeps it so."""
    fields = list(old.fields)
    sources = {field.source for field in new.fields}
    known_now = {known.name for known in old.fields if known.source in sources}
    places = {f.source: at for at, f in reversed(list(enumerate(old.fields))) if f.source not in f.aliases}
    by_id = {each: at for at, f in enumerate(old.fields) for each in f.ids}
    seen: set[str] = set()
    for field in new.fields:
        place = next((by_id[each] for each in field.ids if each in by_id), None)
        if place is None and not field.aliases and not field.ids:
            place = places.get(field.source)
        if place is not None:  # nearly always, and then no other field matters
            same = old.fields[place]
            _see(same, field, seen, path)
            fields[place] = _same(same, field, path)
            if field.source != same.source:  # a later version of another message is matched by this name
                taken = {name for f in fields for name in (f.source, *f.aliases)} | (sources - {field.source})
                if field.source not in taken:
                    fields[place] = replace(fields[place], aliases=(*fields[place].aliases, field.source))
            continue
        known = same_field(field, old.fields)
        if known and known.source != field.source and known.name in known_now and field.source not in known.aliases:
            known = None  # it claims an earlier name of a field that this version still has: a field of its own
        others = [f for f in fields if known is None or f.name != known.name]
        owned = {name for f in others for name in (f.source, *f.aliases)} | (sources - {field.source})
        field = replace(field, aliases=tuple(a for a in field.aliases if a not in owned))
        if known is None:
            fields.append(_new(field, fields, required=field.required and first, top=top))
            continue
        if known.name in known_now and known.source != field.source:
            raise _twice(known, field, path)
        _see(known, field, seen, path)
        fields[fields.index(known)] = _merged(known, field, others, path, top=top)
    absent = {f.name for f in old.fields} - seen
    merged = tuple(replace(f, required=False) if f.name in absent and f.required else f for f in fields)
    is_old = len(merged) == len(old.fields) and all(map(operator.is_, merged, old.fields))
    return old if is_old else Struct(merged, origins=old.origins)


def _see(known: Field, field: Field, seen: set[str], path: tuple[str, ...]) -> None:
    if known.name in seen:
        raise _twice(known, field, path)
    seen.add(known.name)


def _twice(known: Field, field: Field, path: tuple[str, ...]) -> IncompatibleSchema:
    return incompatible((*path, field.source), f"two fields of one version are the column {known.name!r}")


def _same(known: Field, field: Field, path: tuple[str, ...]) -> Field:
    """Merge the field with one of the same name; return the same object if that changes nothing."""
    kind, as_json = _types(known, field, (*path, field.source))
    required, doc = known.required and field.required, field.doc or known.doc
    has_own_scale = known.has_own_scale or field.has_own_scale
    known = with_ids(known, field.ids)
    now = (as_json, required, doc, has_own_scale)
    if kind is known.type and now == (known.as_json, known.required, known.doc, known.has_own_scale):
        return known
    return replace(known, type=kind, required=required, doc=doc, as_json=as_json, has_own_scale=has_own_scale)


def _new(field: Field, others: Sequence[Field], *, required: bool, top: bool) -> Field:
    taken = _taken(others)
    is_second = is_member(field) and folded(field.source) in taken  # of this short name
    name = claimed(field.ids[0] if is_second else field.source, taken, top=top)
    return replace(field, name=name, type=_folded(field.type), required=required)


def _taken(fields: Sequence[Field]) -> set[str]:
    """Return the names in use; an earlier name of a renamed column stays reserved, as older rows have it."""
    return {f.name for f in fields} | {folded(alias) for f in fields for alias in f.aliases}


def _merged(known: Field, field: Field, others: Sequence[Field], path: tuple[str, ...], *, top: bool) -> Field:
    merged_type, as_json = _types(known, field, (*path, field.source))
    renamed = field.source != known.source and not {known.source, *known.aliases}.isdisjoint(field.aliases)
    source = field.source if renamed else known.source
    names = dict.fromkeys((*known.aliases, *field.aliases, known.source, field.source))
    return Field(
        name=claimed(source, _taken(others), top=top) if renamed else known.name,
        type=merged_type,
        required=known.required and field.required,
        doc=field.doc or known.doc,
        source=source,
        aliases=tuple(name for name in names if name != source),
        as_json=as_json,
        has_own_scale=known.has_own_scale or field.has_own_scale,
        ids=tuple(dict.fromkeys((*known.ids, *field.ids))),
    )


def _types(known: Field, field: Field, path: tuple[str, ...]) -> tuple[Type, bool]:
    """Return the type of a column that holds both, and whether it is JSON text: that holds every structure."""
    if is_union(known.type) is not is_union(field.type):
        old, new = (_lifted(each.type, as_json=each.as_json) for each in (known, field))
        if not (is_union(old) and is_union(new)):
            raise incompatible(path, f"{column_kind(known)} cannot become {column_kind(field)}")
        return _type(old, new, path), False
    if known.as_json and (field.as_json or not isinstance(field.type, Primitive | Decimal)):
        return known.type, True
    if known.as_json or field.as_json:
        raise incompatible(path, f"{column_kind(known)} cannot become {column_kind(field)}")
    return _type(known.type, field.type, path), False


def _type(old: Type, new: Type, path: tuple[str, ...]) -> Type:
    if is_union(old) is not is_union(new):
        old, new = _lifted(old), _lifted(new)
    if is_renamed(old, new):
        raise incompatible(path, f"{type_names(old)} cannot become {type_names(new)}: an alias would rename it")
    merged = _same_kind(old, new, path)
    return made_of(merged, *origins(old), *origins(new))


def _lifted(of: Type, *, as_json: bool = False) -> Type:
    return of if is_union(of) else _folded(as_union(of, as_json=as_json))


def _same_kind(old: Type, new: Type, path: tuple[str, ...]) -> Type:
    match old, new:
        case Struct(), Struct():
            return _structs(old, new, path, top=False)
        case ListOf(a, required), ListOf(b, also):
            element = _type(a, b, (*path, "element"))
            return old if element is a and required <= also else ListOf(element, required and also)
        case MapOf(key, a, required), MapOf(other, b, also):
            both = _type(key, other, (*path, "key")), _type(a, b, (*path, "value"))
            return old if both[0] is key and both[1] is a and required <= also else MapOf(*both, required and also)
        case ((Primitive() | Decimal()), (Primitive() | Decimal())):
            units = {of.unit for of in (old, new) if isinstance(of, Primitive) and of.unit}
            if len(units) > 1:
                raise incompatible(path, f"{brief(old)} of {_unit(old)} cannot become {brief(new)} of {_unit(new)}")
            if holds(old, new):
                return _with_unit(old, units)
            if becomes(old, new):
                return _with_unit(new, units)
    raise incompatible(path, f"{brief(old)} cannot become {brief(new)}")


def _unit(of: Type) -> str:
    return of.unit if isinstance(of, Primitive) else ""


def _with_unit(of: Type, units: set[str]) -> Type:
    return replace(of, unit=units.pop()) if units and isinstance(of, Primitive) and not of.unit else of


def incompatible(path: Sequence[str], what: str, do: str = "") -> IncompatibleSchema:
    """Return the error of a change at this path, which it shows dotted; `do` is the remedy, if it is not the usual one."""
    usual = "Give the field another name, or land the topic in another table"
    if path[:1] in (("_kafka_key",), ("_kafka", "key")):  # the key as a column, which no field names
        usual = "Declare the key's format as before, or name another table"
    return IncompatibleSchema(what, where=".".join(path), do=do or usual)


def type_names(of: Type) -> str:
    """Return the names of a writer's types that a column is made of, for messages; of a union its members."""
    if isinstance(of, Struct) and is_union(of):
        return " and ".join(field.ids[0].removeprefix(MEMBER) for field in of.fields if is_member(field))
    return " and ".join(names[0] for names in origins(of)) or brief(of)


def brief(of: Type) -> str:
    """Return the type in a word or two, for messages."""
    match of:
        case Struct() if is_union(of):
            return f"a union of {type_names(of)}"
        case Struct():
            return "a struct"
        case ListOf():
            return "a list"
        case MapOf():
            return "a map"
        case _:
            return str(of)


def column_kind(field: Field) -> str:
    """Return what the column holds in a word or two, for messages."""
    return "JSON text" if field.as_json else brief(field.type)


def _folded(of: Type) -> Type:
    if isinstance(of, Struct):
        return replace(adopted(of, top=False), origins=of.origins)
    return with_inside(of, _folded)
