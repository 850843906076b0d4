"""The records of a few short ranges as Spark's internal rows, without a plan: the classes of Spark's Kafka source, by reflection.

`DataFrameReader` opens an admin client, plans a relation and turns each row into an external one and back. That takes longer than
300 records take to be landed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from pyspark.sql import SparkSession

from frazil.ingest.plan.ranges import OffsetRange
from frazil.lake.java_classes import Java, JavaClasses
from frazil.lake.prepared_plan import Rows

_KAFKA = "org.apache.spark.sql.kafka010."
_PARTITION = "org.apache.kafka.common.TopicPartition"
_POLL_MS = 120_000
"""Spark's default for `kafkaConsumer.pollTimeoutMs`: its network timeout."""


def kafka_rows(
    spark: SparkSession,
    topic: str,
    ranges: Sequence[OffsetRange],
    options: Mapping[str, str],
    *,
    headers: bool,
) -> Rows:
    """Read `ranges`, with the columns of Spark's Kafka source; `options` are its `kafka.` options, group and isolation included.

    Records that no longer exist make the read fail.
    """
    source = _source(spark)
    parameters = source.parameters(tuple(sorted(options.items())))
    return Rows(source.rdd(parameters, source.ranges(topic, ranges), headers), source.schema(headers))


class _Source:
    """The classes of Spark's Kafka source, as one session sees them."""

    def __init__(self, spark: SparkSession) -> None:
        jvm, session = cast(Any, spark._jvm), cast(Any, spark)._jsparkSession
        self._context = session.sparkContext()
        self._classes = JavaClasses(spark.sparkContext._gateway, session.sharedState().jarClassLoader())
        self._scala = jvm.org.apache.spark.api.python.PythonUtils
        self._none = jvm.scala.Option.empty()
        self.parameters = lru_cache(maxsize=64)(self._parameters)
        self.schema = lru_cache(maxsize=2)(self._schema)
        self._convert = lru_cache(maxsize=2)(self._converter)

    def _parameters(self, options: tuple[tuple[str, str], ...]) -> Java:
        """Return the options of consumers in tasks, made as Spark makes them, secrets included."""
        named = {name.removeprefix("kafka."): value for name, value in options}
        found = self._scala.toScalaMap(self._classes.map_of(named))
        provider = self._classes.load(_KAFKA + "KafkaSourceProvider$").getField("MODULE$").get(None)
        return provider.kafkaParamsForExecutors(found, named["group.id"])

    def _schema(self, headers: bool) -> Java:
        return self._classes.static(_KAFKA + "KafkaRecordToRowConverter", "kafkaSchema", ("boolean", headers))

    def _converter(self, headers: bool) -> Java:
        made = self._classes.new(_KAFKA + "KafkaRecordToRowConverter")
        return made.toInternalRowWithHeaders() if headers else made.toInternalRowWithoutHeaders()

    def ranges(self, topic: str, ranges: Sequence[OffsetRange]) -> Java:
        """Return the ranges as Spark's source has them."""
        return self._scala.toSeq(self._classes.list_of(self._range(topic, one) for one in ranges))

    def _range(self, topic: str, one: OffsetRange) -> Java:
        partition = self._classes.new(_PARTITION, ("java.lang.String", topic), ("int", one.partition))
        ends = ("long", one.start), ("long", one.end)
        return self._classes.new(
            _KAFKA + "KafkaOffsetRange", (_PARTITION, partition), *ends, ("scala.Option", self._none)
        )

    def rdd(self, parameters: Java, ranges: Java, headers: bool) -> Java:
        """Return the records as an RDD of internal rows; a task reads each range."""
        arguments = (
            ("org.apache.spark.SparkContext", self._context),
            ("java.util.Map", parameters),
            ("scala.collection.immutable.Seq", ranges),
            ("long", _POLL_MS),
            ("boolean", True),
        )
        records = self._classes.new(_KAFKA + "KafkaSourceRDD", *arguments)
        row = self._classes.load("org.apache.spark.sql.catalyst.InternalRow")
        tag = self._classes.static("scala.reflect.ClassTag", "apply", ("java.lang.Class", row))
        return records.map(self._convert(headers), tag)


@lru_cache(maxsize=4)
def _source(spark: SparkSession) -> _Source:
    return _Source(spark)
