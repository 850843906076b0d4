"""Spark's `from_avro`, whose plans several threads may use at once.

PySpark's hands its options over as `map(…)`, an expression with one buffer, which every copy of a plan shares and evaluates again.
Threads of pipelines that compare their plans with the same kept rows, or derive others from it, then read options from a buffer
that another one fills: `DUPLICATED_MAP_KEY`, or options that are missing. A literal is evaluated by none.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column as ClassicColumn


def from_avro(body: Column, schema: str, options: Mapping[str, str]) -> Column:
    """Return what a body of this schema is; `options` are those of Spark's `from_avro`."""
    given = ClassicColumn(_literal(SparkContext._active_spark_context, *sorted(options.items())))
    return F.call_function("from_avro", body, F.lit(schema), given)


@lru_cache(maxsize=256)
def _literal(context: Any, *options: tuple[str, str]) -> Any:
    """Return a literal of type `map<string, string>`, made once in each JVM."""
    jvm = context._jvm
    found = jvm.java.util.LinkedHashMap()
    for name, value in options:
        found.put(name, value)
    of_scala = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(found)
    kind = jvm.org.apache.spark.sql.types.DataType.fromDDL("map<string, string>")
    literal = jvm.org.apache.spark.sql.catalyst.expressions.Literal.create(of_scala, kind)
    return jvm.org.apache.spark.sql.functions.lit(literal)
