"""Open dead letters: which of them are wanted, and their records as Kafka held them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.dead_letters.encrypted_bytes import MARK, decrypted_columns, key_of
from frazil.declaration import Pipeline
from frazil.errors import InvalidInput
from frazil.ingest.batch.refused_records import ranges
from frazil.job.context import JobContext
from frazil.lake.commit.dead_letters.outcomes import OUTCOME
from frazil.lake.java_classes import Java
from frazil.lake.row_offsets import quoted, snapshot_rows
from frazil.schemas.dead_letter_outcomes import DeadLetterOutcome

RUN, REJECTED_AT = "_frazil_run", "_frazil_rejected_at"
"""Columns of a record with the batch that rejected it."""
_WANTED = "run string, staged_us long, partition int, offset long"


@dataclass(frozen=True, slots=True, order=True)
class Letter:
    """The place of a dead letter: when its batch was staged, microseconds since 1970, its run, and the record's place."""

    staged_us: int
    run: str
    partition: int
    offset: int

    @property
    def place(self) -> tuple[int, int]:
        """The record's place."""
        return self.partition, self.offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The open dead letters that are asked for; all without a condition.

    `offsets` are the first and the last one of a partition. `since` and `until` limit the time of rejection.
    """

    reason: str | None = None
    schema_id: int | None = None
    partition: int | None = None
    offsets: tuple[int, int] | None = None
    since: datetime | None = None
    until: datetime | None = None

    def condition(self) -> Column:
        """Return the condition on rows of the dead-letter table."""
        found = F.col(OUTCOME).isNull()
        if self.reason is not None:
            found &= F.col("reason") == self.reason
        if self.schema_id is not None:
            found &= F.col("schema_id") == self.schema_id
        if self.partition is not None:
            found &= F.col("partition") == self.partition
        if self.offsets is not None:
            found &= F.col("offset").between(*self.offsets)
        if self.since is not None:
            found &= F.col("rejected_at") >= F.lit(self.since)
        if self.until is not None:
            found &= F.col("rejected_at") < F.lit(self.until)
        return found


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The dead-letter table of a pipeline at one snapshot, as loaded."""

    pipeline: Pipeline
    job: JobContext
    side: Java
    snapshot_id: int

    @property
    def rows(self) -> DataFrame:
        """All rows."""
        name = quoted(f"{self.job.iceberg.name}.{self.pipeline.table.dead_letters}")
        return snapshot_rows(self.job.iceberg, name, self.side, self.snapshot_id)[0]

    def next(self, wanted: Wanted, after: Letter | None, most: int) -> tuple[dict[Letter, str], Letter | None]:
        """Return the next dead letters after one with their reasons, `most` at most, and the last of them; None after the last.

        They have different places: of a topic that was created again, the later ones are in the next batch.
        """
        staged_us = F.unix_micros("rejected_at").alias("staged_us")
        rows = self.rows.where(wanted.condition()).select(staged_us, "run", "partition", "offset", "reason").dropna()
        if after is not None:
            known = F.struct(F.lit(after.staged_us), F.lit(after.run), F.lit(after.partition), F.lit(after.offset))
            place = F.struct("staged_us", "run", "partition", "offset")
            rows = rows.where(place > known.cast("struct<staged_us:bigint,run:string,partition:int,offset:bigint>"))
        read = rows.orderBy("staged_us", "run", "partition", "offset").limit(most).toArrow()
        found: dict[Letter, str] = {}
        places = set[tuple[int, int]]()
        for at, run, partition, offset, reason in zip(*(column.to_pylist() for column in read.columns), strict=True):
            letter = Letter(at, run, partition, offset)
            if letter.place in places:
                break
            places.add(letter.place)
            found[letter] = reason
        return found, max(found, default=None)

    def count(self, wanted: Wanted) -> int:
        """Return how many dead letters are wanted."""
        return self.rows.where(wanted.condition()).count()

    def records(self, letters: Collection[Letter] | None = None) -> DataFrame:
        """Return the records of these dead letters, or of all, with their bytes as Kafka held them.

        Raises `InvalidInput` if some are encrypted with another secret than the declared one.
        """
        rows = self.rows
        if letters is not None:
            listed = [(one.run, one.staged_us, one.partition, one.offset) for one in letters]
            moments = [one.staged_us for one in letters]
            begin, end = (F.timestamp_micros(F.lit(moment)) for moment in (min(moments), max(moments)))
            of = self.job.spark.createDataFrame(listed, _WANTED)
            of = of.withColumn("rejected_at", F.timestamp_micros("staged_us")).drop("staged_us")
            rows = rows.where(F.col("rejected_at").between(begin, end))
            rows = rows.join(F.broadcast(of), ["run", "rejected_at", "partition", "offset"], "left_semi")
        return self._plain(
            rows.select(
                "key",
                "value",
                "topic",
                "partition",
                "offset",
                "timestamp",
                F.col("timestamp_type").alias("timestampType"),
                "headers",
                F.col("run").alias(RUN),
                F.col("rejected_at").alias(REJECTED_AT),
            )
        )

    def _plain(self, records: DataFrame) -> DataFrame:
        declared = self.pipeline.shape.dead_letters
        if declared is None:
            return records
        return decrypted_columns(records, key_of(self.job.secret(declared.secret)))

    def check_bytes(self, wanted: Wanted) -> None:
        """Raise `InvalidInput` if the records of some dead letters were not kept, as values are masked, or cannot be decrypted."""
        rows = self.rows.where(wanted.condition())
        where, declared = f"table {self.pipeline.table.dead_letters}", self.pipeline.shape.dead_letters
        is_encrypted = F.startswith(F.col("value"), F.lit(MARK)) | F.startswith(F.col("key"), F.lit(MARK))
        if declared is None:
            if not rows.where(F.coalesce(is_encrypted, F.lit(False))).isEmpty():
                raise InvalidInput(
                    "dead letters are encrypted", where=where, do="Declare their secret in shape.dead_letters"
                )
        else:
            read = decrypted_columns(rows, key_of(self.job.secret(declared.secret)))
            lost = read.where(F.coalesce(is_encrypted, F.lit(False)))
            if not lost.isEmpty():
                what = "dead letters are encrypted with another secret, or were changed"
                raise InvalidInput(what, where=where, do="Declare the secret of that time in shape.dead_letters")
        if self.pipeline.shape.is_masked:
            lost = rows.where(F.col("key").isNull() & F.col("value").isNull() & F.col("headers").isNull())
            if number := lost.count():
                what = f"the bytes of {number} dead letters were not kept, as the pipeline masks values"
                do = "Declare shape.dead_letters to keep them encrypted; of these, land the topic again"
                raise InvalidInput(what, where=where, do=do)


def outcomes(
    found: Mapping[DeadLetterOutcome | None, Sequence[Letter]], *, why: str | None = None
) -> list[dict[str, object]]:
    """Return the part of a decision about dead letters: by batch and outcome, the ranges of their offsets. None: they stay open."""
    made = []
    for outcome, letters in found.items():
        by_batch: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for letter in sorted(letters):
            by_batch.setdefault((letter.run, letter.staged_us), []).append(letter.place)
        for (run, staged_us), places in by_batch.items():
            at = {str(p): found for p, found in ranges(sorted(places)).items()}
            one = {"run": run, "staged_us": staged_us, "outcome": None if outcome is None else outcome.value, "at": at}
            made.append(one if why is None else {**one, "why": why})
    return made
