"""Read the attributes of one type in an Avro schema: its logical type, its names, its texts."""

from __future__ import annotations

import unicodedata
from typing import Any

from frazil.schemas.avro.schema import NANO_TIMESTAMP, ZONED_TIMESTAMP, Simple
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
VARIABLE_SCALE_DECIMAL = "io.debezium.data.VariableScaleDecimal"
"""The record that Debezium writes for a number of no fixed scale: its scale, and its digits in bytes."""
NUMBER = {"scale": Simple("int"), "value": Simple("bytes")}
"""The fields of that record."""


def simple_type(name: str, tree: dict[str, Any], *, connect_types: bool = False) -> Simple:
    """Return a primitive type with its logical type, if Avro knows that for it; with `connect_types`, also if Debezium does."""
    logical = tree.get("logicalType")
    if connect_types and (named := DEBEZIUM.get((name, text_of(tree, "connect.name")))):
        return Simple(name, named)
    if name == "bytes" and logical == "decimal" and (decimal := decimal_of(tree)):
        return Simple(name, "decimal", decimal)
    return Simple(name, logical) if isinstance(logical, str) and logical in LOGICAL.get(name, ()) else Simple(name)


def decimal_of(tree: dict[str, Any]) -> Decimal | None:
    """Return the precision and scale of a type; None if they are missing or invalid."""
    precision, scale = tree.get("precision"), tree.get("scale", 0)
    are_integers = all(isinstance(n, int) and not isinstance(n, bool) for n in (precision, scale))
    return Decimal(precision, scale) if are_integers and 0 <= scale <= precision and precision > 0 else None  # type: ignore[arg-type,operator]


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
