"""Route decoded records to the rows of the table, and the rows of its dead-letter table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.lake.constant import constant
from frazil.schemas.metadata import COORDINATES, INGESTED_AT


def metadata(
    *, schema_id: str, struct: bool, ingested_at: datetime, key: Column | None = None, headers: Column | None = None
) -> list[Column]:
    """Return the metadata columns of a row, in the declared layout; `schema_id` names a column of the decoded records.

    `key` and `headers` are the content of those columns, if it is not what Kafka holds.
    """
    found = {"schema_id": F.col(schema_id)}
    found |= {name: given for name, given in (("key", key), ("headers", headers)) if given is not None}
    coordinates = {f.name: found.get(f.name, F.col(f.name)) for f in COORDINATES}
    at = constant(F.lit(ingested_at).cast("timestamp")).alias(INGESTED_AT.name)
    if struct:
        return [F.struct(*(c.alias(name) for name, c in coordinates.items())).alias("_kafka"), at]
    return [*(c.alias(f"_kafka_{name}") for name, c in coordinates.items()), at]


def route(decoded: DataFrame, values: Sequence[Column], metadata: Sequence[Column]) -> DataFrame:
    """Return the rows of the table: the value's columns, then the record's place in Kafka."""
    return decoded.select(*values, *metadata)
