"""Stage the records of dead letters: judge each by today's decoder, and write the rows of those that land."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from frazil.clients.kafka_records import Record
from frazil.declaration.options import Tombstones
from frazil.declaration.write_modes import tombstones
from frazil.decode.decoded_columns import ELSEWHERE, REASON
from frazil.decode.shape.row_filter import is_filtered
from frazil.decode.writers.seen_frames import SeenFrames
from frazil.ingest.batch import record_counts
from frazil.ingest.batch.routed_read import OwnPart
from frazil.ingest.batch.staging import Staging
from frazil.ingest.plan.plan import Handling, Plan
from frazil.lake.layout import prefix_of
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.prepared_plan import Build, Run, planned_anew
from frazil.lake.row_offsets import quoted_part
from frazil.replay.open_letters import REJECTED_AT, RUN, Letter
from frazil.schemas.reasons import Reason
from frazil.upsert.resolver_protocol import HASH, KAFKA_OFFSET, KAFKA_PARTITION, key_hash
from frazil.upsert.stale_keys import REJECTED_KEY

Place = tuple[int, int]
_KEY = "_frazil_letter_"


@dataclass(frozen=True, slots=True)
class ReplayPlan(Plan):
    """A plan that reads nothing from Kafka; so many dead `letters` land."""

    letters: int = 0

    @property
    def rows(self) -> int:
        """The number of dead letters."""
        return self.letters

    @classmethod
    def of(cls, committed: Offsets, letters: int, *, fills: bool) -> ReplayPlan:
        """Return the plan of a batch on the table's offsets, which stay. A key's row may be of another partition."""
        handling = Handling(thorough=True, fills=fills)
        return cls(committed, committed, committed, 0, keys_move=True, handling=handling, letters=letters)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts on the records of dead letters by today's decoder.

    `failed` still have a reason. `filtered` are left out by the declaration. `hashes` are those of the keys of the others, if they
    were asked for. `values` and `keys` are frames that no decoder knows.
    """

    failed: Mapping[Place, str] = field(default_factory=dict)
    filtered: Collection[Place] = ()
    hashes: Mapping[Place, int] = field(default_factory=dict)
    values: SeenFrames = SeenFrames()  # noqa: RUF009 # frozen
    keys: SeenFrames = SeenFrames()  # noqa: RUF009 # frozen


@dataclass(frozen=True, slots=True)
class ReplayStaging(Staging):
    """Staging of the records of dead letters; `records` are those of one batch."""

    records: DataFrame | None = None

    @classmethod
    def of(cls, staging: Staging, records: DataFrame) -> ReplayStaging:
        """Return how dead letters are staged into the table that records of the topic are staged into by `staging`."""
        names = ("pipeline", "job", "mode", "decoding", "layout", "key", "limits")
        return cls(**{name: getattr(staging, name) for name in names}, records=records)

    def judge(self, *, with_hashes: bool) -> Verdicts:
        """Decode the records, and return the verdict on each."""
        assert self.records is not None
        thorough, observed = self.decoding.thorough, Observation()
        own = thorough.own(self.records)
        rejected = thorough.rejected(own, unplaced=self.unplaced())
        found = record_counts.observe_rejected(rejected, observed, F.lit(False))
        failed = {(row["partition"], row["offset"]): row[REASON] for row in _places(found, REASON)}
        counted = record_counts.rejected(observed.get)
        if thorough.shape.route is not None:
            elsewhere = _places(thorough.routed(self.records).where(F.col(ELSEWHERE)))
            elsewhere += _places(rejected.where(F.col(REASON) == Reason.ROUTE.value))
            failed |= {(row["partition"], row["offset"]): Reason.ROUTE.value for row in elsewhere}
        skipped = [place for place, reason in failed.items() if self._is_let_go(reason)]
        filtered, hashes = set(skipped), dict[Place, int]()
        failed = {place: reason for place, reason in failed.items() if place not in filtered}
        if with_hashes or thorough.shape.filter is not None:
            rows = thorough.rows(own, self.unplaced())
            is_left = F.lit(False) if thorough.shape.filter is None else is_filtered() & self.mode.dropped()
            more = [is_left.alias("_frazil_left"), *(self._of_key() if with_hashes else ())]
            for row in self._hashed(rows.select(*_as_places(), *more), with_hashes=with_hashes).collect():
                place = row[KAFKA_PARTITION], row[KAFKA_OFFSET]
                if row["_frazil_left"]:
                    filtered.add(place)
                elif with_hashes:
                    hashes[place] = row[HASH]
        return Verdicts(failed, filtered, hashes, counted.values, counted.keys)

    def last_of_keys(self, stale: DataFrame) -> dict[int, Letter]:
        """Return the last dead letter of each key whose hash is in `stale`, of the records, as far as their keys can be read."""
        assert self.records is not None
        thorough, key = self.decoding.thorough, self.layout.key
        assert key is not None
        own = thorough.own(self.records)
        rows = thorough.rows(own, self.unplaced()).select(*_as_places(), RUN, REJECTED_AT, *self._of_key())
        rejected = thorough.rejected(own, unplaced=self.unplaced())
        of_rejected = rejected.select(
            *_as_places(), RUN, REJECTED_AT, thorough.key_of_rejected(key).alias(REJECTED_KEY)
        )
        names = [F.col(REJECTED_KEY)[name].alias(name) for name in key.names]
        unread = of_rejected.select(KAFKA_PARTITION, KAFKA_OFFSET, RUN, REJECTED_AT, *names).dropna(
            subset=list(key.names)
        )
        last = F.max(F.struct(F.unix_micros(REJECTED_AT), KAFKA_PARTITION, KAFKA_OFFSET, RUN)).alias("last")
        every = [one.withColumn(HASH, key_hash(one, key.names)).drop(*key.names) for one in (rows, unread)]
        both = every[0].unionByName(every[1]).join(F.broadcast(stale), HASH)
        return {
            row[HASH]: Letter(row["last"][0], row["last"][3], row["last"][1], row["last"][2])
            for row in both.groupBy(HASH).agg(last).collect()
        }

    def rows_of_keys(self) -> dict[int, tuple[int, int]]:
        """Return partition and offset of the row that the table has of each key of the records, by the key's hash."""
        thorough, names = self.decoding.thorough, self.layout.key_names
        assert self.records is not None
        rows = thorough.rows(thorough.own(self.records), self.unplaced()).select(*self._of_key()).distinct()
        renamed = {name: f"{_KEY}{number}" for number, name in enumerate(names)}
        keys = rows.withColumn(HASH, key_hash(rows, names)).withColumnsRenamed(renamed)
        table = self.job.spark.table(f"{self.job.iceberg.name}.{self.pipeline.table.identifier}")
        prefix = prefix_of(self.pipeline)
        is_it = reduce(Column.__and__, (F.col(quoted_part(name)) == F.col(key) for name, key in renamed.items()))
        place = [F.col(f"{prefix}{name}").alias(f"{_KEY}{name}") for name in ("partition", "offset")]
        found = table.join(F.broadcast(keys), is_it).select(HASH, *place)
        return {row[0]: (row[1], row[2]) for row in found.collect()}

    def _of_key(self) -> list[Column]:
        """Return the columns of the rows' key."""
        key = self.layout.key
        assert key is not None
        values = key.values()
        return [values[name].alias(name) for name in key.names]

    def _hashed(self, rows: DataFrame, *, with_hashes: bool) -> DataFrame:
        if not with_hashes:
            return rows
        return rows.withColumn(HASH, key_hash(rows, self.layout.key_names)).drop(*self.layout.key_names)

    def _is_let_go(self, reason: str) -> bool:
        """Return whether the declaration leaves a record without a row out."""
        is_skipped = reason == Reason.TOMBSTONE.value and tombstones(self.pipeline.write) is Tombstones.SKIP
        return is_skipped or reason == Reason.NO_CHANGE.value

    def over(self, records: DataFrame) -> ReplayStaging:
        """Return the staging of other records."""
        return replace(self, records=records)

    def landing(self, places: Collection[Place]) -> ReplayStaging:
        """Return the staging of those records that are at these places."""
        assert self.records is not None
        listed = self.job.spark.createDataFrame(sorted(places), "partition int, offset long")
        return replace(self, records=self.records.join(F.broadcast(listed), ["partition", "offset"], "left_semi"))

    def _run(
        self,
        planned: Plan,
        by_driver: Sequence[Record],
        build: Build,
        depends_on: Hashable | None,
        *,
        headers: bool = False,
        divided: OwnPart | None = None,
    ) -> Run:
        assert self.records is not None
        return planned_anew(self.records.drop(RUN, REJECTED_AT), build)

    def _divided(self, planned: Plan, by_driver: Sequence[Record]) -> OwnPart | None:
        return None


def _as_places() -> list[Column]:
    return [F.col("partition").alias(KAFKA_PARTITION), F.col("offset").alias(KAFKA_OFFSET)]


def _places(rows: DataFrame, *more: str) -> list[Any]:
    return rows.select("partition", "offset", *more).collect()
