"""Records of several types that are read once, counted, and divided by type in Spark's shuffle files: each table reads its own.

Spark writes an exchange as a file for each task, divided by number, and can read some of the numbers (`getShuffleRDD`), as its
adaptive execution does. What was written stays until `unpersist`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.decode.record_decoder import RecordDecoder
from frazil.ingest.batch import record_counts
from frazil.ingest.batch.read import SPLIT_ROWS
from frazil.ingest.batch.record_counts import Read
from frazil.ingest.plan.ranges import OffsetRange
from frazil.lake.commit.fence import StageAgain
from frazil.lake.java_classes import Java
from frazil.lake.prepared_plan import Rows, observed_values

_READ, _PART, _TYPES = "read", "_frazil_part", "types"
_WITHOUT_TYPE, _WITHOUT_VALUE = 0, 1


@dataclass(frozen=True, slots=True)
class OwnPart:
    """The `rows` records of a read that may be a table's. `counts` are those of all its records."""

    records: DataFrame
    counts: Read
    rows: int

    def read(self, observed: Mapping[str, Any]) -> Read:
        """Return the counts of the read, and those of other tables. Raises `StageAgain` if `observe_own` missed a record."""
        found = record_counts.own(observed, self.counts, self.rows)
        if found is None:
            raise StageAgain(f"of {self.rows} divided records {observed['read']} were read")
        return found


@dataclass(frozen=True, slots=True)
class RoutedRead:
    """The records of a stretch of offsets, divided. `counts` are those of all, `sizes` those of each part.

    The first parts are records of no known type and those without a value, the others have the types `names` in their order: as a
    header or a frame has them. Each part is `each` partitions of the exchange.
    """

    spark: SparkSession
    exchange: Java
    schema: Java
    names: Sequence[bytes]
    each: int
    counts: Read
    sizes: Mapping[int, int]

    def own(self, decoding: RecordDecoder) -> OwnPart:
        """Return the records that may be a table's."""
        wanted = [number for number, is_own in enumerate(decoding.own_parts(self.names)) if is_own]
        found = [number for number in wanted if self.sizes.get(number, 0)]
        return OwnPart(self._part(found), self.counts, sum(self.sizes[number] for number in found))

    def _part(self, numbers: Sequence[int]) -> DataFrame:
        jvm, context = cast(Any, self.spark)._jvm, cast(Any, self.spark.sparkContext)
        execution = jvm.org.apache.spark.sql.execution
        places = [number * self.each + place for number in numbers for place in range(self.each)]
        specs = context._gateway.new_array(execution.ShufflePartitionSpec, len(places))
        for index, place in enumerate(places):
            specs[index] = execution.CoalescedPartitionSpec.apply(place, place + 1, 0)
        found = Rows(self.exchange.getShuffleRDD(specs), self.schema).frame(self.spark).drop(_PART)
        rows = sum(self.sizes.get(number, 0) for number in numbers)
        return found.coalesce(max(1, min(rows // SPLIT_ROWS, context.defaultParallelism)))

    def unpersist(self) -> None:
        """Remove the files."""
        with suppress(Py4JError, OSError, AttributeError, TypeError):  # the JVM has ended
            cleaner = cast(Any, self.spark.sparkContext)._jsc.sc().cleaner().get()
            cleaner.doCleanupShuffle(self.exchange.shuffleDependency().shuffleId(), False)


def routed_read(
    records: DataFrame, decoding: RecordDecoder, ranges: Sequence[OffsetRange], *, with_key_ids: bool
) -> RoutedRead:
    """Read the records, count them, and divide them by the types that the decoder's route knows before it decodes."""
    spark = records.sparkSession
    names = decoding.type_names()
    parts = len(names) + _WITHOUT_VALUE + 1
    each = max(1, min(sum(map(len, ranges)) // (parts * SPLIT_ROWS), spark.sparkContext.defaultParallelism))
    typed, of_type = decoding.with_type(records)
    place = F.array_position(F.array(*(F.lit(bytearray(name)) for name in names)), of_type).cast("int")  # from 1 on
    number = F.when(place > 0, place + _WITHOUT_VALUE).otherwise(_WITHOUT_TYPE) if names else F.lit(_WITHOUT_TYPE)
    part = F.when(decoding.has_no_value(), _WITHOUT_VALUE).otherwise(number)
    typed = typed.withColumn(_PART, part).select(*records.columns, _PART)
    sizes = record_counts.by_number(F.col(_PART)).alias(_TYPES)
    counted = record_counts.observe_records(typed, _READ, ranges, with_key_ids=with_key_ids, also=[sizes])
    counted = counted.select(*records.columns, _PART)
    place = (F.col(_PART) * each + F.col("offset") % each).cast("int")
    divided = counted.repartitionById(parts * each, place)
    execution = cast(Any, divided)._jdf.queryExecution()
    exchange, scala = execution.executedPlan(), cast(Any, spark)._jvm.scala.concurrent
    scala.Await.result(exchange.submitShuffleJob(), scala.duration.Duration.Inf())
    observed = observed_values(spark, execution.observedMetrics().apply(_READ))
    return RoutedRead(
        spark=spark,
        exchange=exchange,
        schema=execution.analyzed().schema(),
        names=names,
        each=each,
        counts=record_counts.read(observed),
        sizes=record_counts.counts(observed[_TYPES]),
    )
