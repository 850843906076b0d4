"""Truncates of the source's table, where they delete all rows: records before the last one of a batch change nothing."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from frazil.declaration import Pipeline, Upsert
from frazil.declaration.options import Truncation
from frazil.ingest.batch.remembered import Learned, Place, Truncated
from frazil.ingest.plan.plan import Plan


def deletes_all(pipeline: Pipeline, planned: Plan) -> bool:
    """Return whether a truncate deletes all rows: that is declared, and one partition says which records are before it."""
    write = pipeline.write
    return isinstance(write, Upsert) and write.on_truncate is Truncation.DELETE_ALL and len(planned.end.at) == 1


def check_met(pipeline: Pipeline, planned: Plan, truncated: Truncated, last: int | None, *, clears: bool) -> None:
    """Raise `Learned` if the `last` truncate of a batch is not the one for which its rows were staged, or for which it `clears`."""
    if not deletes_all(pipeline, planned):
        return
    ((partition, _),) = planned.end.at.items()
    met = Place(planned.end.topic_id, partition, last) if last is not None else None
    if met != (truncated.at if clears else None):
        truncated.at = met
        raise Learned("the source's table was truncated", where=f"pipeline {pipeline.name}")


@dataclass(frozen=True, slots=True)
class Landed:
    """The records of a batch that have a row; those `behind` a truncate are the ones that count."""

    behind: DataFrame
    observed: Observation | None = None

    @classmethod
    def of(cls, landed: DataFrame, pipeline: Pipeline, planned: Plan, truncated: Truncated) -> Landed:
        """Return the records behind the truncate, all if the batch has none."""
        at = truncated.at
        if at is None or not deletes_all(pipeline, planned) or planned.end.topic_id != at.topic_id:
            return cls(landed)
        if not any(one.partition == at.partition and one.start <= at.offset < one.end for one in planned.ranges):
            return cls(landed)
        observed = Observation()
        counted = landed.observe(observed, F.count_if(F.col("offset") <= at.offset).alias("before"))
        return cls(counted.where(F.col("offset") > at.offset), observed)

    @property
    def clears(self) -> bool:
        """Whether all rows of the table go."""
        return self.observed is not None

    @property
    def before(self) -> int:
        """How many records with a row are before the truncate; known once the others are staged."""
        return int(self.observed.get["before"] or 0) if self.observed is not None else 0
