"""The hash of a key in Spark; `key_hash` computes the same without it."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_SECOND_SEED = 0x5EED


def key_hash(rows: DataFrame, names: Sequence[str], *, is_second: bool = False) -> Column:
    """Return the hash of a row's key; it stays the same when a column is promoted from int to long, or to more decimal digits.

    The second hash of a key begins with another seed.
    """
    types = {field.name: field.dataType.typeName() for field in rows.schema.fields}
    stable = {"byte": "bigint", "short": "bigint", "integer": "bigint", "decimal": "string"}
    seed = [F.lit(_SECOND_SEED)] if is_second else []
    return F.xxhash64(*seed, *(F.col(n).cast(stable[types[n]]) if types[n] in stable else F.col(n) for n in names))
