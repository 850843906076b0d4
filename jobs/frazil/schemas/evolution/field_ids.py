"""Identities of fields whose names do not identify them: members of a union, and numbered fields of Protobuf.

The id of a member is `member_` and the full name of its type. That of a numbered field is `MESSAGE:NUMBER:TYPE`: the message is
the record's own, however deep the field is in it. A table keeps the ids of its columns, so each column is found again whatever
versions are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from frazil.schemas.types import Field, Kind, ListOf, MapOf, Primitive, Struct, Type

MEMBER = "member_"
"""The text that Spark puts before a union branch's type name (https://spark.apache.org/docs/4.1.1/sql-data-sources-avro.html)."""

SINGLE_VALUE = ("",)
"""The origin of a row that is one value, in the column `value`, and no record."""

_NARROW = {"int": Kind.INT, "float": Kind.FLOAT}
_PRIMITIVES = {"boolean", "int", "long", "float", "double", "bytes", "string", "array", "map"}
_UNNAMED = "ConnectDefault"
"""Kafka Connect's converter names a record without a name so; the number that follows changes with other records."""
_OF_ANY_TABLE = {"Value", "Envelope"}
"""Debezium's names for the rows and events of each table; the namespace names the table."""


def numbered_id(message: str, number: int, type_name: str) -> str:
    """Return the id of a numbered field in a record of this message."""
    return f"{message}:{number}:{type_name}"


def identified(field: Field, among: Sequence[Field]) -> Field | None:
    """Return the one of these that has an id of the field."""
    return next((known for known in among if not set(known.ids).isdisjoint(field.ids)), None) if field.ids else None


def record_of(row: Struct) -> frozenset[str]:
    """Return the names of the record that a version describes: its own, or that of its Protobuf message."""
    return frozenset(name for names in row.origins for name in names).union(*map(_scopes, row.fields))


@dataclass(frozen=True, slots=True)
class _Version:
    """A version of a record: its place among all, that of its schema, and the record's names."""

    place: int
    schema: int
    names: frozenset[str]
    row: Struct


def by_record(versions: Sequence[tuple[int, Struct]]) -> list[list[Struct]]:
    """Return the versions of each record, oldest first; each version has the id of its schema.

    A record stays itself under an alias and, as in Avro, in another namespace. Records of the same name in two namespaces are
    two if a schema has both, or if schemas of the one come before and after the other.
    """
    schemas = list(dict.fromkeys(schema for schema, _ in versions))
    named: list[list[_Version]] = []
    for place, (schema, row) in enumerate(versions):
        one = _Version(place, schemas.index(schema), record_of(row), row)
        same = [
            each for each in named if any(of.names == one.names or not of.names.isdisjoint(one.names) for of in each)
        ]
        joined = sorted((*chain(*same), one), key=lambda each: each.place)
        named = [*(each for each in named if each not in same), joined]
    found: list[list[_Version]] = []
    for versions_of in sorted(named, key=lambda each: each[0].place):
        alike = [each for each in found if not _last_names(each).isdisjoint(_last_names(versions_of))]
        if len(alike) == 1 and alike[0][-1].schema < versions_of[0].schema:
            alike[0].extend(versions_of)
        else:
            found.append(versions_of)
    return [[each.row for each in one] for one in found]


def _last_names(versions: Sequence[_Version]) -> set[str]:
    return {name.rpartition(".")[2] for each in versions for name in each.names} - _OF_ANY_TABLE


def is_other(known: Field, field: Field) -> bool:
    """Return whether the ids say that these are two fields, whatever their names are.

    A number that keeps its name is the same field if its type changes.
    """
    if _scopes(known).isdisjoint(_scopes(field)) or identified(field, (known,)):
        return False
    return {known.name, known.source}.isdisjoint({field.name, field.source}) or _numbers(known).isdisjoint(
        _numbers(field)
    )


def with_ids(field: Field, ids: Sequence[str]) -> Field:
    """Return the field with these ids, too; the same object if it has them."""
    return field if set(ids) <= set(field.ids) else replace(field, ids=tuple(dict.fromkeys((*field.ids, *ids))))


def member(names: Sequence[str], of: Type, *, as_json: bool = False) -> Field:
    """Return the field of a union's member; the first name is the full one of its type, the others are its aliases."""
    ids = tuple(MEMBER + name for name in names)
    return Field(MEMBER + names[0].rpartition(".")[2], of, as_json=as_json, ids=ids)


def is_member(field: Field) -> bool:
    """Return whether the field is a member of a union."""
    return any(each.startswith(MEMBER) and ":" not in each for each in field.ids)


def is_union(of: Type) -> bool:
    """Return whether the type is the struct of a union's members."""
    return isinstance(of, Struct) and any(map(is_member, of.fields))


def origins(of: Type) -> tuple[tuple[str, ...], ...]:
    """Return the names of each type of a writer that a column is made of; empty if they are not known, or for a union."""
    match of:
        case ListOf():
            return (("array",),)
        case MapOf():
            return (("map",),)
        case _:
            return of.origins


def made_of(of: Type, *more: tuple[str, ...]) -> Type:
    """Return the type, made of these types of a writer, too; the same object if that changes nothing."""
    if isinstance(of, ListOf | MapOf) or is_union(of):
        return of
    found = list(of.origins)
    for names in more:
        known = next((each for each in found if not set(each).isdisjoint(names)), None)
        if known is None:
            found.append(names)
        else:
            found[found.index(known)] = tuple(dict.fromkeys((*known, *names)))
    return of if tuple(found) == of.origins else replace(of, origins=tuple(found))


def as_union(of: Type, *, as_json: bool = False) -> Type:
    """Return the struct of the members that one type is; the type itself if it is such a struct, or has no known names."""
    if is_union(of) or not origins(of):
        return of
    return Struct(tuple(member(names, _own(of, names), as_json=as_json) for names in origins(of)))


def is_renamed(old: Type, new: Type) -> bool:
    """Return whether two types have names, none of which are equal. As in Avro, a namespace is not part of them."""
    before, after = _short_names(old), _short_names(new)
    return bool(before and after) and before.isdisjoint(after)


def _short_names(of: Type) -> set[str]:
    if isinstance(of, ListOf | MapOf) or is_union(of):
        return set()
    names = {name.rpartition(".")[2] for each in of.origins for name in each}
    is_unsure = names & _PRIMITIVES or any(name.startswith(_UNNAMED) for name in names)
    return set() if is_unsure else names


def _own(of: Type, names: tuple[str, ...]) -> Type:
    """Return one of the types that a column is made of: the column may have been widened for another one."""
    if isinstance(of, ListOf | MapOf):
        return of
    if len(of.origins) > 1 and names[0] in _NARROW and of in (Primitive(Kind.LONG), Primitive(Kind.DOUBLE)):
        return Primitive(_NARROW[names[0]], origins=(names,))
    return replace(of, origins=(names,))


def _scopes(field: Field) -> set[str]:
    return {each.rpartition(":")[0].rpartition(":")[0] for each in field.ids}


def _numbers(field: Field) -> set[str]:
    return {number for each in field.ids if (number := each.rpartition(":")[0])}
