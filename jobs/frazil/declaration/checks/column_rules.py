"""The columns that Frazil itself makes: which names are taken, and what partitions and sorting can do with them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from frazil.declaration.checks.constraints import shown
from frazil.declaration.checks.problems import Refusal
from frazil.declaration.options import (
    FLAT_COLUMNS,
    INGESTED_AT,
    STRUCT_COLUMN,
    STRUCT_FIELDS,
    VALUE_COLUMN,
    MetadataColumns,
)
from frazil.declaration.partitioning import PartitionField, SortField, Transform

if TYPE_CHECKING:
    from frazil.declaration.formats import FormatOptions

_RESERVED = frozenset(
    {STRUCT_COLUMN, INGESTED_AT, "_decoded"}  # the last is the mark of a decoded Avro record
    # Iceberg's metadata columns (https://iceberg.apache.org/spec/#reserved-field-ids)
    | {"_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"}
    | {"_change_type", "_change_ordinal", "_commit_snapshot_id"}
)
_COLUMN = re.compile(r"[a-z_][a-z0-9_]{0,127}")
KEY_COLUMN_PATTERN = f"^{_COLUMN.pattern}$"
STATE_COLUMNS = frozenset({"_order", "_deleted_at"})
"""Columns that Frazil adds to upsert tables."""

# Iceberg's type of each fact of a record; the key's depends on its format and is that of bytes here.
_FACT_TYPES = {
    "topic": "string",
    "partition": "int",
    "offset": "long",
    "timestamp": "timestamptz",
    "key": "binary",
    "headers": "list",
    "schema_id": "int",
}
KEY_SOURCE = f"{STRUCT_COLUMN}_key"
"""The column of a record's key in the flat layout."""
_KEY_SOURCES = frozenset({KEY_SOURCE, f"{STRUCT_COLUMN}.key"})


def is_reserved(column: str) -> bool:
    """Return whether a top-level column of this name belongs to Frazil or Iceberg, whatever a record's value has."""
    return column in _RESERVED or column.startswith((f"{STRUCT_COLUMN}_", "_frazil_"))


def key_column_refusal(name: str) -> Refusal | None:
    """Return why no column of a value that may be part of a key has this name."""
    if is_reserved(name):
        return Refusal(
            f"{name} is not a column of the value: such names are Frazil's or Iceberg's own",
            "Name columns of the value, or remove key: then the record's key is the key",
        )
    return _name_refusal(name)


def column_name_refusal(name: str) -> Refusal | None:
    """Return why no column of a row gets this name."""
    if is_reserved(name) or name in STATE_COLUMNS:
        return Refusal(f"{name} is a name of Frazil's or Iceberg's own columns", "Write another name")
    return _name_refusal(name)


def _name_refusal(name: str) -> Refusal | None:
    if _COLUMN.fullmatch(name):
        return None
    if _COLUMN.fullmatch(name.lower()):
        return Refusal(f"{name} has upper case; columns are lower case", f"Write {name.lower()}")
    if "." in name:
        return Refusal(f"{shown(name)} has a dot, and no field inside a column is a key", "Name a column of its own")
    return Refusal(f"{shown(name)} is no column's name", "Columns have a-z, 0-9 and _, at most 128, and no digit first")


def value_key_refusal(name: str, values: FormatOptions) -> Refusal | None:
    """Return why the column cannot be part of a key if the value has no columns, and `value` is its only one."""
    if values.has_schema or values.has_columns:
        return None
    if values.kind == "json":
        do = "Declare the topic's columns, choose json_schema, or remove key: then the record's key is the key"
        return Refusal("a value of format json is JSON text, and two texts can be one key", do)
    if name == VALUE_COLUMN:
        return None
    return Refusal(f"a table of format {values.kind} has no column {name}", f"Use {VALUE_COLUMN}")


def order_refusal(name: str) -> Refusal | None:
    """Return why no column of this name orders the records of a key."""
    if name == "_kafka_timestamp":
        return None
    if is_reserved(name) or name in STATE_COLUMNS:
        do = "Name columns of the row, or _kafka_timestamp"
        return Refusal(f"{shown(name)} orders no records: offsets do so without order_by", do)
    if _COLUMN.fullmatch(name):
        return None
    return Refusal(f"{shown(name)} is no column's name", "Columns have a-z, 0-9 and _, at most 128, and no digit first")


def metadata_type(source: str, layout: MetadataColumns) -> str | None:
    """Return Iceberg's type of a metadata column or field in this layout; None if the layout does not have it."""
    types = {INGESTED_AT: "timestamptz"}
    if layout is MetadataColumns.FLAT:
        types |= dict(zip(FLAT_COLUMNS, (_FACT_TYPES[fact] for fact in STRUCT_FIELDS), strict=False))
    else:
        types |= {STRUCT_COLUMN: "struct"} | {f"{STRUCT_COLUMN}.{fact}": kind for fact, kind in _FACT_TYPES.items()}
    return types.get(source)


def source_refusal(field: PartitionField | SortField, layout: MetadataColumns) -> Refusal | None:
    """Return why a table of this layout cannot be partitioned or sorted by the field; only the table is considered."""
    column = field.source.partition(".")[0]
    if not is_reserved(column):
        return None
    kind = metadata_type(field.source, layout)
    if kind is None:
        return Refusal(f"{field.source} is not a column of the layout {layout}", _remedy(field.source, layout))
    if isinstance(field, SortField):
        return (
            None
            if kind not in {"list", "struct"}
            else Refusal(f"rows cannot be sorted by a {kind}", "Choose another column")
        )
    return type_refusal(field, kind)


def type_refusal(field: PartitionField, kind: str) -> Refusal | None:
    """Return why this transform of a column of type `kind` is refused: Iceberg cannot do it, or it makes too many partitions."""
    source, transform = field.source, field.transform
    if kind in {"list", "struct"}:
        return Refusal(f"{source} is a {kind}; a partition needs a single value", "Choose another column")
    if transform.is_time and kind != "timestamptz":
        return Refusal(
            f"{transform} takes a time, and {source} is of type {kind}", "Choose a time, like _kafka_timestamp"
        )
    if transform is Transform.TRUNCATE and kind == "timestamptz":
        return Refusal(f"truncate does not take a time, and {source} is one", f"Write days({source})")
    if transform is Transform.IDENTITY and kind == "timestamptz":
        return Refusal(f"{source} by itself makes a partition of each instant", f"Write days({source})")
    if transform is Transform.IDENTITY and kind == "long":
        return Refusal(f"{source} by itself makes a partition of each record", f"Write truncate(1000000, {source})")
    return None


def key_refusal(source: str, keys: FormatOptions) -> Refusal | None:
    """Return why the key cannot be a source: one with a schema may be a struct, and its type is known only later."""
    if source in _KEY_SOURCES and keys.has_columns:
        return Refusal("a key with columns is a struct", "Choose another column, or keys of format bytes, text or json")
    if source in _KEY_SOURCES and keys.has_schema:
        return Refusal(
            f"a key of format {keys.kind} may be a struct",
            "Choose another column, or keys of format bytes, text or json",
        )
    return None


def schemaless_refusal(field: PartitionField | SortField, values: FormatOptions) -> Refusal | None:
    """Return why the field cannot be a source if the value has no columns, and `value` is its only one."""
    if values.has_schema or values.has_columns or is_reserved(field.source.partition(".")[0]):
        return None
    if field.source != VALUE_COLUMN:
        what = f"a table of format {values.kind} has no column {field.source}"
        return Refusal(what, f"Use {VALUE_COLUMN}, or a column of Frazil's like _kafka_timestamp")
    kind = "binary" if values.kind == "bytes" else "string"
    return type_refusal(field, kind) if isinstance(field, PartitionField) else None


def _remedy(source: str, layout: MetadataColumns) -> str:
    other = source.replace(".", "_", 1) if layout is MetadataColumns.FLAT else source.replace("_kafka_", "_kafka.", 1)
    if metadata_type(other, layout):
        return f"Write {other}"
    names = FLAT_COLUMNS if layout is MetadataColumns.FLAT else [f"{STRUCT_COLUMN}.{fact}" for fact in STRUCT_FIELDS]
    return f"Such names are Frazil's or Iceberg's own; use one of {', '.join(dict.fromkeys([*names, INGESTED_AT]))}"
