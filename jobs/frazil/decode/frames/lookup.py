"""A table of many keys as one literal, so that neither the plan nor the call that makes it grows with the keys.

With one literal a key, each would be a node of the plan and a call into the JVM: 50,000 of them take half a minute a batch.
Here all are one text, cut into buckets by the CRC-32 of the key; Spark cuts it once, and a look-up reads one bucket.

The buckets are binary: the description of a plan, which Spark writes for each job, then leaves out their content.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

_ENTRIES = 16  # in a bucket, about: each bucket is an object that is written and read for each task


def lookup(key: Column, entries: Mapping[bytes, str]) -> Column:
    """Return the text of the entry of a binary `key`; null for a key without one, and for null.

    Texts are not empty, and of letters, digits and `_` only.
    """
    if not entries:
        return F.lit(None).cast("string")
    buckets = [[""] for _ in range(max(len(entries) // _ENTRIES, 1))]
    for entry, text in entries.items():
        buckets[zlib.crc32(entry) % len(buckets)].append(f"{entry.hex().upper()}={text}")
    table = F.split(F.lit(",".join(";".join(bucket) for bucket in buckets)), ",").cast("array<binary>")
    bucket = F.get(table, (F.crc32(key) % len(buckets)).cast("int")).cast("string")
    behind = F.split_part(bucket, F.concat(F.lit(";"), F.hex(key), F.lit("=")), F.lit(2))
    return F.nullif(F.split_part(behind, F.lit(";"), F.lit(1)), F.lit(""))
