"""Staging: write rows to data files that no snapshot refers to; and which rows have no place in a table's partitions.

The files are written by Iceberg's own Spark writer through the catalog that its rewrite procedures use
(`SparkRewriteTableCatalog`), which hands the files over instead of committing them. Without a commit they are
orphans, and orphan removal deletes them after days.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import reduce
from operator import add
from typing import Any
from urllib.parse import quote_plus, urlsplit

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.declaration.partitioning import PartitionField as Declared
from frazil.declaration.partitioning import SortField
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java, items
from frazil.schemas.iceberg import field_ids
from frazil.schemas.types import Struct, Type

CATALOG = "staged"
OPTIONS = {
    "write-format": "parquet",
    "use-table-distribution-and-ordering": "false",
    "fanout-enabled": "true",
    "check-nullability": "false",
}
"""Options of every write: the format, and how rows are dealt to files and ordered, whatever properties other engines set."""
FOLDER_BYTES = 255
"""So long is the name of a folder, and of a file, at most: `field=value`, in the encoding of URLs."""
_KEY_BYTES = 1_024
"""So long is an object's key in S3 at most."""
_FILE_BYTES = 160
"""Room for the name of a data file or delete file, and for the folders that `write.object-storage.enabled` adds."""
_OTHER_BYTES = 45
"""The longest value of a partition that is no text: an instant."""
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Staged:
    """Data files in no snapshot, and the table they fit: publishing checks that it still is that table.

    `at` is when staging began, in seconds since 1970, by the driver's clock.
    """

    table: str
    table_uuid: str
    field_ids: dict[str, int]
    files: tuple[Java, ...]
    rows: int
    bytes: int
    at: float
    documents: tuple[dict[str, Any], ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to append."""
        return not self.files and not self.documents


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionField:
    """A field of a table's partitions: `transform` and the `type` of its source, which has dots if it is nested, are Iceberg's."""

    name: str
    source: str
    transform: str
    type: str

    @property
    def width(self) -> int:
        """The width of a truncated text, number of digits, or bytes; 0 for another transform."""
        return int(self.transform[9:-1]) if self.transform.startswith("truncate[") else 0

    @property
    def head(self) -> int:
        """The bytes of the folder's name before the value."""
        return len(quote_plus(self.name, safe="*-._")) + 1

    @property
    def most(self) -> int:
        """The most bytes that the folder's name can have; what is longer than `FOLDER_BYTES` has no limit."""
        if self.type not in ("string", "binary") or not (self.width or self.transform == "identity"):
            return self.head + _OTHER_BYTES
        width = self.width or FOLDER_BYTES
        return self.head + (width * 12 if self.type == "string" else -(-width // 3) * 12)  # a byte takes up to three

    def least(self) -> Decimal | None:
        """Return the least decimal whose truncated value has no more digits than its type; None if there is no such limit."""
        found = re.fullmatch(r"decimal\((\d+), ?(\d+)\)", self.type)
        if found is None or not self.width:
            return None
        return Decimal((1, tuple(map(int, str((10 ** int(found[1]) - 1) // self.width * self.width))), -int(found[2])))

    def text(self, value: Column) -> Column:
        """Return the value as the folder's name has it, before it is encoded."""
        if self.type == "binary":
            return F.translate(F.base64(F.substring(value, 1, self.width) if self.width else value), "\r\n", "")
        return F.substring(value, 1, self.width) if self.width else value


@dataclass(frozen=True, slots=True)
class PartitionLimits:
    """The values that the partitions of a table cannot hold: texts that make a folder's name or a path too long, and
    decimals that have too many digits when they are truncated. `room` is for the names of all folders together.
    """

    fields: tuple[PartitionField, ...] = ()
    room: int = _KEY_BYTES

    @classmethod
    def of(cls, table: Java) -> PartitionLimits:
        """Return the limits of a loaded table."""
        schema, properties = table.schema(), table.properties()  # a Java map: each access is a call
        fields = tuple(
            PartitionField(
                name=str(field.name()),
                source=str(schema.findColumnName(field.sourceId())),
                transform=str(field.transform()),
                type=str(schema.findType(field.sourceId())),
            )
            for field in items(table.spec().fields())
            if schema.findField(field.sourceId()) is not None
        )
        if properties.get("write.object-storage.partitioned-paths") == "false":
            fields = tuple(field for field in fields if field.least() is not None)
        location = urlsplit(str(properties.get("write.data.path") or f"{table.location()}/data")).path
        return cls(fields, max(_KEY_BYTES - _FILE_BYTES - len(location.encode()), FOLDER_BYTES))

    def problem(self, columns: Mapping[str, Column]) -> Column | None:
        """Return why a row has no partition, null if it has one; None if every row has one.

        `columns` are those of the row by name: not all, and a field of another one has no limit.
        """
        values = {field: value for field in self.fields if (value := _of(columns, field.source)) is not None}
        texts = [field for field in values if field.most > field.head + _OTHER_BYTES]
        problem: Column | None = None
        for field, value in values.items():
            if (least := field.least()) is not None:
                is_wrong = value < F.lit(least).cast(field.type)
                what = f"{field.source} has too many digits for a partition, where it is truncated to {field.width}"
            elif field in texts and field.most > FOLDER_BYTES:
                is_wrong = _is_longer(field.text(value), FOLDER_BYTES - field.head)
                what = (
                    f"{field.source} is too long for a partition, whose folder's name has at most {FOLDER_BYTES} bytes"
                )
            else:
                continue
            said = F.concat(F.lit(f"{what}: "), _short(value))
            problem = F.when(is_wrong, said) if problem is None else problem.when(is_wrong, said)
        others = sum(field.head + _OTHER_BYTES + 1 for field in self.fields if field not in texts)
        room = self.room - others - sum(field.head + 1 for field in texts)
        if sum(min(field.most, FOLDER_BYTES) - field.head for field in texts) > room:
            all_texts = [F.coalesce(field.text(values[field]), F.lit("null")) for field in texts]
            is_wrong = (reduce(add, map(F.octet_length, all_texts)) * 3 > room) & _is_longer(F.concat(*all_texts), room)
            names = ", ".join(field.source for field in texts)
            said = F.lit(f"{names} are too long for a partition: a path has at most {_KEY_BYTES:,} bytes")
            problem = F.when(is_wrong, said) if problem is None else problem.when(is_wrong, said)
        return problem


def partition_values(declared: Sequence[Declared], row: Struct) -> tuple[PartitionField, ...]:
    """Return the fields of the partitions of a new table with these columns."""
    found = []
    for field in declared:
        of: Type = row
        for name in field.source.split("."):
            inner = of.fields if isinstance(of, Struct) else ()
            of = next((one.type for one in inner if one.name == name), Struct(()))
        transform = f"{field.transform}[{field.argument}]" if field.argument else str(field.transform)
        found.append(PartitionField(name=field.name, source=field.source, transform=transform, type=str(of)))
    return tuple(found)


def _of(columns: Mapping[str, Column], source: str) -> Column | None:
    root, *inner = source.split(".")
    return reduce(lambda value, name: value[name], inner, columns[root]) if root in columns else None


def _is_longer(text: Column, most: int) -> Column:
    """Return whether a text has more bytes in the encoding of URLs, of which a byte takes up to three."""
    size = F.octet_length(text)
    return F.when(size * 3 <= most, False).when(size > most, True).otherwise(F.length(F.url_encode(text)) > most)


def _short(value: Column) -> Column:
    text = value.cast("string")
    return F.when(F.length(text) > _SHOWN, F.concat(F.substring(text, 1, _SHOWN), F.lit("…"))).otherwise(text)


@dataclass(frozen=True, slots=True)
class Moment:
    """The column of the time at which rows are staged; `number` is an integer of theirs (see `constant`)."""

    name: str
    number: str = "partition"

    def added_to(self, rows: DataFrame, at: float) -> DataFrame:
        """Return the rows with this time, in seconds since 1970."""
        moment = F.lit(datetime.fromtimestamp(at, UTC)).cast("timestamp")
        return rows.withColumn(self.name, constant(moment, F.col(self.number)))


def stage(
    iceberg: Iceberg,
    table: str,
    rows: DataFrame,
    *,
    unique_id: str,
    at: float,
    sort: Sequence[Column] = (),
    moment: Moment | None = None,
) -> Staged:
    """Write `rows`, whose columns are the table's, but for the `moment`, to data files of `table`.

    `sort` orders rows within a task's files only: a global order would run the plan twice to sample it. `unique_id` is an
    id that no other staging of this driver has.
    """
    target = iceberg.load(table)
    rows = moment.added_to(rows, at) if moment else rows
    files = write_files(iceberg, target, rows.sortWithinPartitions(*sort) if sort else rows, unique_id=unique_id)
    return Staged(
        table=table,
        table_uuid=str(target.uuid()),
        field_ids=field_ids(iceberg.schema_json(target)),
        files=files,
        rows=sum(f.recordCount() for f in files),
        bytes=sum(f.fileSizeInBytes() for f in files),
        at=at,
    )


@dataclass(frozen=True, slots=True)
class TableWriter:
    """Stages rows of one table, as `stage` does; `new_id` returns a new `unique_id`, and `pipeline` is for messages."""

    iceberg: Iceberg
    table: str
    new_id: Callable[[], str]
    pipeline: str = ""
    sort: tuple[Column, ...] = ()
    moment: Moment | None = None

    def stage(self, rows: DataFrame, at: float) -> Staged:
        """Write `rows` to data files in no snapshot; `at` is when staging began, in seconds since 1970."""
        return stage(self.iceberg, self.table, rows, unique_id=self.new_id(), at=at, sort=self.sort, moment=self.moment)


def write_files(iceberg: Iceberg, target: Java, rows: DataFrame, *, unique_id: str) -> tuple[Java, ...]:
    """Write `rows` to data files of a loaded table, which no snapshot refers to; return these."""
    cache, coordinator = iceberg.table_cache(), iceberg.coordinator()
    cache.add(unique_id, target)
    try:
        rows.writeTo(f"{CATALOG}.`{unique_id}`").options(**OPTIONS).append()
        return items(coordinator.fetchNewFiles(target, unique_id))
    finally:
        cache.remove(unique_id)
        coordinator.clearRewrite(target, unique_id)


def empty_commit(iceberg: Iceberg, table: str, *, at: float) -> Staged:
    """Return a staged batch without rows: its commit still moves the offsets."""
    target = iceberg.load(table)
    return Staged(table, str(target.uuid()), field_ids(iceberg.schema_json(target)), (), 0, 0, at)


def constant(value: Column, number: Column | None = None) -> Column:
    """Return a value that differs from batch to batch, such that the code that Spark generates does not.

    `number` is an integer that Spark does not know and that is not null, by default the column `partition`.

    Spark writes a plain literal into that code: each batch would be compiled again, by Janino and then by the JVM (measured:
    0.65 CPU-seconds a batch, most of a small one). An array is handed over as an object; the index keeps it from being folded.
    Text and bytes need none of this, as they are handed over as objects.
    """
    return F.get(F.array(value), (F.col("partition") if number is None else number) * 0)


def order(fields: Iterable[SortField]) -> list[Column]:
    """Return the columns to sort by, with direction and place of nulls."""
    return [_column(field) for field in fields]


def _column(field: SortField) -> Column:
    name = F.col(".".join(f"`{part.replace('`', '``')}`" for part in field.source.split(".")))
    if field.ascending:
        return name.asc_nulls_first() if field.nulls_first else name.asc_nulls_last()
    return name.desc_nulls_first() if field.nulls_first else name.desc_nulls_last()
