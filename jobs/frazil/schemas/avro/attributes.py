"""Read the attributes of one type in an Avro schema: its logical type, its names, its texts."""

from __future__ import annotations

import unicodedata
from typing import Any

from frazil.schemas.avro.schema import NANO_TIMESTAMP, ZONED_TIMESTAMP, Simple
from frazil.schemas.connect.connect_types import DECIMAL, decimal_column
from frazil.schemas.types import Decimal

LOGICAL = {
    "int": {"date", "time-millis"},
    "long": {"time-micros"} | {f"{p}timestamp-{u}" for p in ("", "local-") for u in ("millis", "micros", "nanos")},
    "bytes": {"big-decimal"},
    "string": {"uuid"},
}
"""The logical types that are read, by the primitive type that they annotate."""

DEBEZIUM = {
    ("int", "io.debezium.time.Date"): "date",
    ("long", "io.debezium.time.Timestamp"): "local-timestamp-millis",
    ("long", "io.debezium.time.MicroTimestamp"): "local-timestamp-micros",
    ("long", "io.debezium.time.NanoTimestamp"): NANO_TIMESTAMP,
    ("string", "io.debezium.time.ZonedTimestamp"): ZONED_TIMESTAMP,
}
"""The logical type that a primitive type with this name of Debezium's is read as. Others are what they are in Avro.

https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-data-types
"""
NUMBER = {"scale": Simple("int"), "value": Simple("bytes")}
"""The fields of the record that Debezium writes for a number of no fixed scale."""


def simple_type(name: str, tree: dict[str, Any], *, connect_types: bool = False) -> Simple:
    """Return a primitive type with its logical type, if Avro knows that for it; with `connect_types`, also if Debezium does.

    Raises `ValueError` as `decimal_of` does.
    """
    logical = tree.get("logicalType")
    if connect_types and (named := DEBEZIUM.get((name, text_of(tree, "connect.name")))):
        return Simple(name, named)
    if name == "bytes" and (decimal := decimal_of(tree)):
        return Simple(name, "decimal", *decimal)
    return Simple(name, logical) if isinstance(logical, str) and logical in LOGICAL.get(name, ()) else Simple(name)


def decimal_of(tree: dict[str, Any]) -> tuple[Decimal, int] | None:
    """Return the `decimal_column` of bytes that are annotated as a decimal, by Avro or by Kafka Connect; None if they are not.

    Avro ignores an annotation that it does not allow, such as a scale larger than the precision: the number would become bytes
    without its scale. Raises `ValueError` as `decimal_column` does.
    """
    if tree.get("logicalType") != "decimal" and text_of(tree, "connect.name") != DECIMAL:
        return None
    parameters = tree.get("connect.parameters")
    given = parameters if isinstance(parameters, dict) else {}
    precision = tree.get("precision", given.get("connect.decimal.precision"))
    return decimal_column(precision, tree.get("scale", given.get("scale", 0)))


def is_name(text: str) -> bool:
    """Return whether Java Avro's `UTF_VALIDATOR` accepts the name."""
    kinds = ["L" if c == "_" else unicodedata.category(c) for c in text]
    return bool(text) and kinds[0][0] == "L" and all(kind[0] == "L" or kind == "Nd" for kind in kinds)


def text_of(tree: dict[str, Any], name: str) -> str:
    """Return the text of an attribute, without surrounding space; empty if it is missing or no text."""
    value = tree.get(name)
    return value.strip() if isinstance(value, str) else ""


def names_of(value: Any) -> tuple[str, ...]:
    """Return the names in a list; none if it is no list."""
    return tuple(v for v in value if isinstance(v, str) and v) if isinstance(value, list) else ()
