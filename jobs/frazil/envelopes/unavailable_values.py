"""The placeholders of a connector for values that the source did not send, by the type of their column.

PostgreSQL omits an unchanged value of a change if it is stored outside its row (TOAST). Debezium writes a placeholder for it:
https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-toasted-values
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from uuid import UUID

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.schemas.types import Field, Kind, ListOf, MapOf, Primitive, Type


def unavailable(row: Column, fields: Iterable[Field], placeholder: str) -> dict[str, Column]:
    """Return for each column that can hold the placeholder whether it does, by name; the row may be null."""
    found = {field.name: _is_placeholder(row[field.name], field.type, placeholder) for field in fields}
    return {name: F.coalesce(is_it, F.lit(False)) for name, is_it in found.items() if is_it is not None}


def _is_placeholder(value: Column, of: Type, placeholder: str) -> Column | None:
    """Return whether a value is the placeholder; None if no value of the type is.

    Text is itself, or, of an hstore, a JSON object of it. Bytes are its UTF-8. A list of texts or bytes has it as its one element,
    a list of UUIDs, which are texts, the one that Java names after it. A list of PostgreSQL's `int` or `bigint`, or of dates,
    has its bytes; a map has it as its one key and value. For other types, such as `smallint[]`, the connector writes null, which is
    a value, too.
    """
    octets = placeholder.encode()
    match of:
        case Primitive(Kind.STRING):
            as_object = json.dumps({placeholder: placeholder}, separators=(",", ":"), ensure_ascii=False)
            return value.isin(placeholder, as_object)
        case Primitive(Kind.BINARY):
            return value == F.lit(bytearray(octets))
        case ListOf(Primitive(Kind.STRING)):
            return (F.size(value) == 1) & F.get(value, F.lit(0)).isin(placeholder, str(_named(octets)))
        case ListOf(Primitive(Kind.BINARY)):
            return (F.size(value) == 1) & (F.get(value, F.lit(0)) == F.lit(bytearray(octets)))
        case ListOf(Primitive(Kind.INT | Kind.LONG)):
            return value == F.lit([byte - 256 if byte > 127 else byte for byte in octets])
        case ListOf(Primitive(Kind.DATE)):
            days = F.transform(value, lambda day: F.unix_date(day))
            return days == F.lit([byte - 256 if byte > 127 else byte for byte in octets])
        case MapOf(Primitive(Kind.STRING), Primitive(Kind.STRING)):
            keys, values = F.map_keys(value), F.map_values(value)
            return (
                (F.size(value) == 1) & (F.get(keys, F.lit(0)) == placeholder) & (F.get(values, F.lit(0)) == placeholder)
            )
    return None


def _named(octets: bytes) -> UUID:
    """Return the UUID of Java's `nameUUIDFromBytes`."""
    return UUID(bytes=hashlib.md5(octets, usedforsecurity=False).digest(), version=3)
