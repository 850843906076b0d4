"""Identify a record by a short hash, the same whether Spark or the driver reads the record."""

from __future__ import annotations

import hashlib

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.clients.kafka_records import Record

PART = 4096  # bytes of key and of value that count, so that large values cost little; their lengths count, too
DIGITS = 16
TIMESTAMPS = range(-(2**63 // 1000), 2**63 // 1000 + 1)  # milliseconds that Spark's microseconds can hold


def of_columns() -> Column:
    """Return the fingerprint of a record of Spark's Kafka source."""
    parts = [F.coalesce(F.unix_millis("timestamp").cast("string"), F.lit(""))]
    for name in ("key", "value"):
        parts += [F.coalesce(F.length(name).cast("string"), F.lit("-"))]
    head = F.encode(F.concat_ws(":", *parts), "utf-8")
    bodies = [F.coalesce(F.substring(name, 1, PART), F.lit(bytearray())) for name in ("key", "value")]
    return F.substring(F.sha2(F.concat(head, *bodies), 256), 1, DIGITS)


def of_record(record: Record) -> str:
    """Return the fingerprint of a record that the driver read."""
    parts = [str(record.timestamp_ms) if record.timestamp_ms in TIMESTAMPS else ""]
    parts += ["-" if body is None else str(len(body)) for body in (record.key, record.value)]
    bodies = b"".join((body or b"")[:PART] for body in (record.key, record.value))
    return hashlib.sha256(":".join(parts).encode() + bodies).hexdigest()[:DIGITS]
