"""Whether records of a version can land in a target without loss, by another way than the product has."""

from __future__ import annotations

from frazil.errors import IncompatibleSchema
from frazil.schemas.evolution.field_ids import is_union
from frazil.schemas.evolution.merge import brief, column_kind, incompatible, same_field
from frazil.schemas.evolution.table_mapping import as_members
from frazil.schemas.types import Decimal, ListOf, MapOf, Primitive, Struct, Type, holds


def fits(target: Struct, version: Struct) -> IncompatibleSchema | None:
    """Return why records of a version (a row type not yet folded) cannot land in the target without loss; None if they can."""
    try:
        _fit(target, as_members(target, version, target), ())
    except IncompatibleSchema as problem:
        return problem
    return None


def _fit(target: Struct, version: Struct, path: tuple[str, ...]) -> None:
    seen: set[str] = set()
    for field in version.fields:
        here = (*path, field.source)
        column = same_field(field, target.fields)
        if column is None:
            raise incompatible(here, "the table has no column for this field")
        if column.name in seen:
            raise incompatible(here, f"two fields are the column {column.name}")
        seen.add(column.name)
        if column.required and not field.required:
            raise incompatible(here, f"the column {column.name} is required, and this may be null")
        if column.as_json and not isinstance(field.type, Primitive | Decimal):
            continue
        if column.as_json != field.as_json:
            raise incompatible(here, f"the column {column.name} holds {column_kind(column)}")
        _fit_type(column.type, field.type, here)
    for column in target.fields:
        if column.required and column.name not in seen:
            raise incompatible((*path, column.name), "the column is required, and this version lacks it")


def _fit_type(column: Type, value: Type, path: tuple[str, ...]) -> None:
    match column, value:
        case Struct(), Struct() if is_union(column) is is_union(value):
            _fit(column, value, path)
        case ListOf(), ListOf():
            if column.element_required and not value.element_required:
                raise incompatible(path, "the table's list holds no nulls")
            _fit_type(column.element, value.element, (*path, "element"))
        case MapOf(), MapOf():
            if column.value_required and not value.value_required:
                raise incompatible(path, "the table's map holds no nulls")
            _fit_type(column.key, value.key, (*path, "key"))
            _fit_type(column.value, value.value, (*path, "value"))
        case ((Primitive() | Decimal()), (Primitive() | Decimal())) if holds(column, value):
            pass
        case _:
            raise incompatible(path, f"{brief(column)} does not hold {brief(value)}")
