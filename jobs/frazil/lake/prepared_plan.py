"""Plans that are made once and run often: what Spark does with the records of a batch, without their number or place.

To analyse, optimise and plan the decoding of 300 records takes many times the CPU of decoding them. So a small batch runs the
physical plan of an earlier one: its leaf, an RDD of records, is replaced in a copy. Nothing that differs from batch to batch may
be part of the plan: it comes as columns of the records. A large batch is planned by itself: then Spark reads, decodes and writes
in one stage, without a row between them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, cast

from pyspark.sql import DataFrame, Observation, SparkSession

from frazil.lake.java_classes import Java

SMALL_ROWS = 4_096
"""A batch of so many offsets is a small one."""
MOST_PLANS = 8
"""Plans that are kept of one pipeline: each holds its expressions in both processes."""
_SMALL = {
    # Interpreted: code that is generated pays from some thousand rows on.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.lightweightPlanChangeValidation": "false",
}
Observed = Callable[[str], Observation | str]
"""Returns what `DataFrame.observe` takes, for a name."""
Build = Callable[[DataFrame, Observed], DataFrame]
"""Makes the rows of the records."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows as Spark has them inside: an RDD of internal rows, and their schema, both in the JVM."""

    rdd: Java
    schema: Java

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the rows as a frame of a session."""
        return DataFrame(cast(Any, spark)._jsparkSession.internalCreateDataFrame(self.rdd, self.schema, False), spark)


@dataclass(frozen=True, slots=True)
class Run:
    """The rows of one batch; `observed` returns what was observed under a name, when an action has read all rows.

    It is what there was at the first call: rows that are computed again are counted again.
    """

    rows: DataFrame
    observed: Callable[[str], Mapping[str, Any]]


def planned_anew(records: DataFrame, build: Build) -> Run:
    """Return the rows that `build` makes of the records, by a plan of their own."""
    observations: dict[str, Observation] = {}
    rows = build(records, lambda name: observations.setdefault(name, Observation()))
    return Run(rows, lambda name: observations[name].get)


def is_small(rows: int) -> bool:
    """Return whether a batch of so many offsets is a small one."""
    return rows <= SMALL_ROWS


class SmallBatches:
    """A session on the same catalogs that evaluates expressions without code generated for them. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._session: SparkSession | None = None

    def session(self, spark: SparkSession) -> SparkSession:
        """Return the session of small batches next to that of large ones."""
        with self._lock:
            if self._session is None:
                java = cast(Any, spark)._jsparkSession.cloneSession()
                self._session = SparkSession(spark.sparkContext, java)
                for name, value in _SMALL.items():
                    self._session.conf.set(name, value)
            return self._session


class PreparedPlans:
    """The plans of one pipeline, by what they depend on; used by one thread at a time."""

    def __init__(self) -> None:
        self._plans: dict[Hashable, _Prepared] = {}

    def run(self, spark: SparkSession, depends_on: Hashable, records: Rows, build: Build) -> Run:
        """Return the rows that `build` makes of the records, by the plan that was made for the same `depends_on`.

        `build` is only called for the first records. What it makes may depend on `depends_on` and on the columns of the records,
        which are the same for one of these, and on nothing else.
        """
        if depends_on not in self._plans:
            if len(self._plans) == MOST_PLANS:
                del self._plans[next(iter(self._plans))]
            self._plans[depends_on] = _Prepared(spark, records, build)
        return self._plans[depends_on].over(records)

    def forget(self) -> None:
        """Drop all plans: the next batch makes its own."""
        self._plans.clear()


class _Prepared:
    """A physical plan, whose only leaf is an RDD of internal rows."""

    def __init__(self, spark: SparkSession, records: Rows, build: Build) -> None:
        self._spark, self._session, jvm = spark, cast(Any, spark)._jsparkSession, cast(Any, spark._jvm)
        names = self._names = list[str]()

        def noted(name: str) -> str:
            names.append(name)
            return name

        execution = build(records.frame(spark), noted)._jdf.queryExecution()
        self._plan, self._schema = execution.executedPlan(), execution.analyzed().schema()
        self._sessions = jvm.org.apache.spark.sql.classic.SparkSession
        self._metrics = getattr(getattr(jvm.org.apache.spark.sql.execution, "CollectMetricsExec$"), "MODULE$")
        self._rdd = self._plan.collectLeaves().apply(0).getClass().getDeclaredField("rdd")
        self._rdd.setAccessible(True)

    def over(self, records: Rows) -> Run:
        """Return the rows of other records."""
        before = self._sessions.getActiveSession()
        self._sessions.setActiveSession(self._session)  # of this thread: each node of a plan takes it when it is made
        try:
            copy = self._plan.clone()  # whose lazy values, counts among them, are its own
        finally:
            if before.isDefined():
                self._sessions.setActiveSession(before.get())
            else:
                self._sessions.clearActiveSession()
        self._rdd.set(copy.collectLeaves().apply(0), records.rdd)
        made = Rows(copy.execute(), self._schema)
        seen: dict[str, Mapping[str, Any]] = {}

        def observed(name: str) -> Mapping[str, Any]:
            if not seen:
                found = self._metrics.collect(copy)
                seen.update({each: observed_values(self._spark, found.apply(each)) for each in self._names})
            return seen[name]

        return Run(made.frame(self._spark), observed)


def observed_values(spark: SparkSession, row: Java) -> Mapping[str, Any]:
    """Return the aggregates of an observation, by their names, from a row of the JVM."""
    rows = cast(Any, spark)._jvm.org.apache.spark.sql.api.python.PythonSQLUtils
    found: Mapping[str, Any] = pickle.loads(rows.toPyRow(row)).asDict(recursive=False)  # noqa: S301 # of the own JVM
    return found
