"""A constant column whose value differs from batch to batch, without new code for each."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def constant(value: Column, number: Column | None = None) -> Column:
    """Return a value that differs from batch to batch, such that the code that Spark generates does not.

    `number` is an integer that Spark does not know and that is not null, by default the column `partition`.

    Spark writes a plain literal into that code: each batch would be compiled again, by Janino and then by the JVM (measured:
    0.65 CPU-seconds a batch, most of a small one). An array is handed over as an object; the index keeps it from being folded.
    Text and bytes need none of this, as they are handed over as objects.
    """
    return F.get(F.array(value), (F.col("partition") if number is None else number) * 0)
