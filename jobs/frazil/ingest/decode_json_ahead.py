"""JSON bodies to rows ahead of `from_json`: in Python workers, an Arrow batch at a time (see `json_batches`)."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.ingest.body import Step
from frazil.ingest.spark_types import spark_struct
from frazil.schemas.types import Struct


def ahead_of(target: Struct) -> Step | None:
    """The `ahead` of a body of JSON objects, whose properties differ in more than case; None if no row of `target` is sure."""
    import pyarrow as pa  # a driver without JSON needs none of it
    from pyspark.sql.pandas.types import to_arrow_type

    from frazil.ingest.json_batches import LONGEST_BODY, can_read, rows_of

    if not can_read(target):
        return None
    returned = spark_struct(target).add("_decoded", T.BooleanType())
    arrow_type = to_arrow_type(returned)

    def read(bodies: pa.Array) -> pa.Array:
        return rows_of(bodies, target, arrow_type)

    read.__annotations__ = {"bodies": pa.Array, "return": pa.Array}

    def ahead(body: Column) -> Column:
        short = F.when(F.length(body) <= LONGEST_BODY, body)  # so that no batch outgrows Arrow, or a worker's memory
        rows: Column = F.arrow_udf(read, returned)(short)  # type: ignore[attr-defined]  # new in 4.1, not in its stubs
        return rows

    return ahead
