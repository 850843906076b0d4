"""The columns by which a table is partitioned and sorted: whether they exist, and whether their types can do that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

from frazil.declaration.checks.column_rules import is_reserved
from frazil.declaration.checks.problems import Problem
from frazil.declaration.options import MetadataColumns
from frazil.declaration.partitioning import PartitionField, SortField, Transform
from frazil.declaration.table import Table
from frazil.errors import InvalidInput
from frazil.schemas.json_columns import variant_columns
from frazil.schemas.metadata import OF_CHANGELOGS, OF_STATES, metadata_fields
from frazil.schemas.types import Decimal, Kind, Primitive, Struct, Type

_SHOWN = 30
_DATES = {Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ}
_TAKEN = {
    Transform.TRUNCATE: {Kind.INT, Kind.LONG, Kind.STRING, Kind.BINARY},
    Transform.BUCKET: {*Kind} - {Kind.BOOLEAN, Kind.FLOAT, Kind.DOUBLE, Kind.VARIANT},
    Transform.HOURS: _DATES - {Kind.DATE},
    **dict.fromkeys((Transform.YEARS, Transform.MONTHS, Transform.DAYS), _DATES),
}
"""The types that a transform takes (https://iceberg.apache.org/spec/#partition-transforms). Decimals have truncate and bucket."""


def check_sources(
    declared: Sequence[PartitionField | SortField], ids: Iterable[str], *, table: str, field: str
) -> None:
    """Raise `InvalidInput` if a declared partition or sort field names no column; `ids` has all columns by name."""
    known = sorted(ids, key=lambda name: (name.startswith("_") or "." in name, name))
    missing = [one.source for one in declared if one.source not in known]
    if not missing:
        return
    near = [name for source in missing for name in get_close_matches(source, known, n=1)]
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    raise InvalidInput(
        f"{', '.join(missing)} is not a column; there are {', '.join(known[:_SHOWN])}{more}",
        where=f"table {table}, {field}",
        do=f"Did you mean {', '.join(near)}?" if near else "Name a column of the value or a `_kafka_*` column",
    )


def check_order(declared: Sequence[PartitionField | SortField], row: Struct, *, table: str, field: str) -> None:
    """Raise `InvalidInput` if a declared partition or sort field is a variant, whose values have no order."""
    variants = variant_columns(row)
    if found := [one.source for one in declared if one.source in variants]:
        raise InvalidInput(
            f"{', '.join(found)} is a variant, which partitions and orders no rows",
            where=f"table {table}, {field}",
            do="Name another column, or remove the table's json_columns",
        )


def source_problems(table: Table, row: Struct) -> Iterator[Problem]:
    """Yield which partition and sort fields name no column of rows of this type, or one of a type that does not fit."""
    columns = Struct((*row.fields, *metadata_fields(struct=table.metadata_columns is MetadataColumns.STRUCT)))
    types = dict(_types(columns, ""))
    declared: dict[str, Sequence[PartitionField | SortField]] = {
        "partition_by": table.partition_fields,
        "sort_by": table.sort_fields,
    }
    for name, fields in declared.items():
        for index, field in enumerate(fields):
            path, of = f"table.{name}[{index}]", types.get(field.source)
            if field.source in {*OF_STATES, *OF_CHANGELOGS} and of is None:
                continue
            try:
                check_sources([field], types, table=table.identifier, field=name)
                check_order([field], columns, table=table.identifier, field=name)
            except InvalidInput as error:
                yield Problem(path, error.what, error.do)
                continue
            if of is not None and not is_reserved(field.source.partition(".")[0]) and not _takes(field, of):
                what = f"{field.source} is of type {of}, which {_does(field)}"
                yield Problem(path, what, "Name another column, or another transform")


def _types(row: Struct, prefix: str) -> Iterator[tuple[str, Type]]:
    for field in row.fields:
        yield prefix + field.name, field.type
        if isinstance(field.type, Struct):
            yield from _types(field.type, f"{prefix}{field.name}.")


def _takes(field: PartitionField | SortField, of: Type) -> bool:
    if isinstance(field, SortField) or field.transform is Transform.IDENTITY:
        return isinstance(of, Primitive | Decimal)
    if isinstance(of, Decimal):
        return field.transform in (Transform.TRUNCATE, Transform.BUCKET)
    return isinstance(of, Primitive) and of.kind in _TAKEN[field.transform]


def _does(field: PartitionField | SortField) -> str:
    if isinstance(field, SortField):
        return "orders no rows"
    return "partitions no rows" if field.transform is Transform.IDENTITY else f"{field.transform} does not take"
