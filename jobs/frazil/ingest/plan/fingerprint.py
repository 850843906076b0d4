"""Identify a record by a short hash, the same whether Spark or the driver reads the record."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from frazil.clients.kafka_records import Record

if TYPE_CHECKING:
    from pyspark.sql import Column

PART = 4096  # bytes of key and of value that count, so that large values cost little; their lengths count, too
DIGITS = 16
# One text, as each function is a call into the JVM, and there are 44 of them.
_OF_COLUMNS = """
    substring(sha2(concat(
        encode(concat_ws(':',
            coalesce(cast(unix_millis(timestamp) as string), ''),
            coalesce(cast(length(key) as string), '-'),
            coalesce(cast(length(value) as string), '-')), 'utf-8'),
        coalesce(substring(key, 1, {part}), X''),
        coalesce(substring(value, 1, {part}), X'')), 256), 1, {digits})
"""
TIMESTAMPS = range(-(2**63 // 1000), 2**63 // 1000 + 1)  # milliseconds that Spark's microseconds can hold


def of_columns(*, bodies: bool = True, held: bool = True) -> Column:
    """Return the fingerprint of a record of Spark's Kafka source; without `bodies` it depends on the lengths of values alone.

    If it is not `held`, the fingerprint is that of a record without key and value.
    """
    from pyspark.sql import functions as F  # commands that only compare records load no Spark

    text = _OF_COLUMNS.format(part=PART if bodies else 0, digits=DIGITS)
    return F.expr(text if held else re.sub(r"\b(key|value)\b", "cast(null as binary)", text))


def is_of(record: Record, known: str) -> bool:
    """Return whether a fingerprint, with bodies or without them, is that of a record that the driver read."""
    return known in (of_record(record), of_record(record, bodies=False))


def of_record(record: Record, *, bodies: bool = True) -> str:
    """Return the fingerprint of a record that the driver read."""
    parts = [str(record.timestamp_ms) if record.timestamp_ms in TIMESTAMPS else ""]
    parts += ["-" if body is None else str(len(body)) for body in (record.key, record.value)]
    held = b"".join((body or b"")[:PART] for body in (record.key, record.value)) if bodies else b""
    return hashlib.sha256(":".join(parts).encode() + held).hexdigest()[:DIGITS]
