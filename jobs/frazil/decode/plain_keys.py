"""Keys that no schema describes, text or bytes: which of them a registry's serialiser wrote."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.declaration.options import KeyFormat
from frazil.decode.plain_avro import begins_as_registered
from frazil.decode.wire_format import header
from frazil.schemas.wire_format import KEY_HEADER


def plain_key(of: KeyFormat) -> KeyFormat | None:
    """Return the format of keys of one value that no schema describes; None for others."""
    return of if of in (KeyFormat.BYTES, KeyFormat.TEXT) else None


def names_schema(plain: KeyFormat | None) -> Column:
    """Return whether the record's key, of this format, names a schema; false for None.

    A header does, and text that begins with byte 0 and an id. Bytes may begin so and be a number.
    """
    if plain is None:
        return F.lit(False)
    named = header(F.col("headers"), KEY_HEADER).isNotNull()
    if plain is KeyFormat.TEXT:
        named |= begins_as_registered(F.col("key"))
    return F.col("key").isNotNull() & F.coalesce(named, F.lit(False))
