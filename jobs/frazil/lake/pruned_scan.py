"""The scan of a filtered table, without the filter."""

from __future__ import annotations

from typing import Any, cast

from pyspark.sql import DataFrame


def pruned(rows: DataFrame) -> DataFrame:
    """Return what Spark reads of a table for `rows`, a filter and a projection of it: the columns that both need, by their names.

    Iceberg prunes partitions, data files and row groups by the filter. Rows that do not meet it may be among the result.

    Spark compares each row that is read with the filter's values too, and writes numbers into the code that it generates. So each
    batch of keys would be compiled again, by Janino and then by the JVM, while it reads: the search for 30,000 random keys among 5
    million took 1.4 s in place of 0.8.
    """
    spark = rows.sparkSession
    scan = rows._jdf.queryExecution().optimizedPlan().collectLeaves().apply(0)
    datasets = cast(Any, spark._jvm).org.apache.spark.sql.classic.Dataset
    return DataFrame(datasets.ofRows(spark._jsparkSession, scan), spark)
