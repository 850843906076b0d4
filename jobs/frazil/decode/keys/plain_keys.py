"""Keys that no schema describes, text or bytes: which of them a registry's serialiser wrote."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.declaration.options import KeyFormat
from frazil.decode.avro.plain_avro import begins_as_registered


def plain_key(of: KeyFormat) -> KeyFormat | None:
    """Return the format of keys of one value that no schema describes; None for others."""
    return of if of in (KeyFormat.BYTES, KeyFormat.TEXT) else None


def names_schema(plain: KeyFormat | None) -> Column:
    """Return whether the record's key, of this format, begins with the id of a schema for certain; false for None.

    Text that begins with byte 0 and an id does. Bytes may begin so and be a number.
    """
    if plain is not KeyFormat.TEXT:
        return F.lit(False)
    return F.coalesce(begins_as_registered(F.col("key")), F.lit(False))
