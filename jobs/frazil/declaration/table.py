"""An Iceberg table, as a pipeline keeps it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated, TypeVar

from frazil.declaration.checks.allowed_options import property_problems
from frazil.declaration.checks.column_rules import source_refusal
from frazil.declaration.checks.constraints import between, matching, notation, one_of
from frazil.declaration.checks.declared import Chosen, declared, default
from frazil.declaration.checks.problems import InvalidDeclaration, Problem, Refusal
from frazil.declaration.checks.validation import FrozenMap, validate
from frazil.declaration.options import JsonColumns, MetadataColumns, SchemaEvolution
from frazil.declaration.partitioning import PartitionField, SortField, Transform, partition_field, sort_field

F = TypeVar("F", PartitionField, SortField)

DEAD_LETTERS_SUFFIX = "__dead_letters"
_MIB = 1024**2
# Glue takes 255 characters for either part; the table's dead letters need room for their suffix.
_IDENTIFIER = matching(
    rf"[a-z0-9_]{{1,255}}\.[a-z0-9_]{{1,{255 - len(DEAD_LETTERS_SUFFIX)}}}",
    "a table's identifier",
    "Write namespace.table, of a-z, 0-9 and _ (the table's name up to 241 characters)",
)


def as_table_name(text: str) -> str:
    """Return a text with `_` for what the name of a table may not have: `Order-Items` -> `order_items`."""
    return re.sub("[^a-z0-9_]", "_", text.lower())


@declared
class Keep:
    """The snapshots that expiry keeps: the newest ones, and with `days` also those that are younger."""

    newest: Annotated[int, "The number of newest snapshots.", between(1, 100_000)] = field(default=100, kw_only=False)
    days: Annotated[int | None, "Keep younger snapshots too, at most 10,000.", between(1, 36_500)] = None


@declared
class Table:
    """A table, and how its files are laid out."""

    identifier: Annotated[str, "namespace.table, lower case.", _IDENTIFIER] = field(kw_only=False)
    partition_by: Annotated[
        tuple[Annotated[str, notation(partition_field)], ...],
        "Partition fields in Iceberg's notation: days(x), bucket(8, x), truncate(4, x), x.",
    ] = ()
    sort_by: Annotated[
        tuple[Annotated[str, notation(sort_field)], ...],
        "The order of rows within a file: x, x desc, x asc nulls last.",
    ] = ()
    format_version: Annotated[int, "Iceberg's format version. Athena cannot read 3.", one_of(2, 3)] = 2
    target_file_size_bytes: Annotated[
        int, "The size of files that compaction writes.", between(_MIB, 8 * 1024 * _MIB)
    ] = 256 * _MIB
    metadata_columns: Annotated[Chosen[MetadataColumns], "The columns with the coordinates of a row's record."] = (
        default(MetadataColumns.FLAT)
    )
    json_columns: Annotated[
        Chosen[JsonColumns | None],
        "With format_version 3: the type of columns that hold JSON. Default: string, the JSON text.",
    ] = default(None)
    properties: Annotated[Mapping[str, str], "Iceberg's table properties, except those that Frazil sets."] = FrozenMap()
    schema_evolution: Annotated[Chosen[SchemaEvolution], "How a new schema version may change the table."] = default(
        SchemaEvolution.WIDEN
    )
    snapshots: Annotated[Keep, "The snapshots that expiry keeps."] = Keep()

    def __post_init__(self) -> None:
        validate(self, self._contradictions)
        object.__setattr__(self, "partition_by", tuple(map(str, self.partition_fields)))
        object.__setattr__(self, "sort_by", tuple(map(str, self.sort_fields)))

    @property
    def namespace(self) -> str:
        """The part of the identifier before the dot."""
        return self.identifier.partition(".")[0]

    @property
    def name(self) -> str:
        """The part of the identifier after the dot."""
        return self.identifier.partition(".")[2]

    @property
    def dead_letters(self) -> str:
        """The identifier of the table that keeps rejected records."""
        return f"{self.identifier}{DEAD_LETTERS_SUFFIX}"

    @property
    def has_variants(self) -> bool:
        """True if columns that hold JSON are variants."""
        return self.json_columns is JsonColumns.VARIANT

    @property
    def partition_fields(self) -> tuple[PartitionField, ...]:
        """`partition_by`, understood."""
        return tuple(map(partition_field, self.partition_by))

    @property
    def sort_fields(self) -> tuple[SortField, ...]:
        """`sort_by`, understood."""
        return tuple(map(sort_field, self.sort_by))

    def _contradictions(self) -> Iterator[Problem]:
        partitions = _understood(partition_field, self.partition_by)
        sorts = _understood(sort_field, self.sort_by)
        for index, place in partitions.items():
            refusal = source_refusal(place, self.metadata_columns) or _clash(index, partitions)
            if refusal:
                yield Problem(f"partition_by[{index}]", *refusal)
        for index, order in sorts.items():
            refusal = source_refusal(order, self.metadata_columns)
            if not refusal and order.source in {sorts[i].source for i in sorts if i < index}:
                refusal = Refusal(f"rows are already sorted by {order.source}", "Remove one of the two")
            if refusal:
                yield Problem(f"sort_by[{index}]", *refusal)
        if self.has_variants and self.format_version < 3:
            what = f"tables of format version {self.format_version} have no variants"
            yield Problem("json_columns", what, "Declare format_version=3, or remove it")
        yield from property_problems(self.properties)


def _understood(parse: Callable[[str], F], texts: Sequence[str]) -> dict[int, F]:
    """Return the fields by their index, without those that their own rule refuses."""
    fields: dict[int, F] = {}
    for index, text in enumerate(texts):
        try:
            fields[index] = parse(text)
        except InvalidDeclaration:
            continue
    return fields


def _clash(index: int, places: Mapping[int, PartitionField]) -> Refusal | None:
    """Return why Iceberg (`PartitionSpec.Builder`) refuses this field next to another: same meaning, or same name."""
    field = places[index]
    for earlier in (places[i] for i in places if i < index):
        if field == earlier:
            return Refusal(f"{field} is given twice", "Remove one of the two")
        if field.source == earlier.source and field.transform.is_time and earlier.transform.is_time:
            return Refusal(f"{earlier} already partitions by the time of {field.source}", "Keep the finer one")
        if field.source == earlier.source and field.transform is earlier.transform:
            return Refusal(f"{earlier} already takes the name {field.name}", "Keep one of the two")
    for other in places.values():
        if field.transform is not Transform.IDENTITY and field.name == other.source:
            return Refusal(f"its name in the spec, {field.name}, is a column's", "Partition by something else")
    return None
