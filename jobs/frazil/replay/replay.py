"""Land open dead letters again, batch by batch. Each batch is one commit of the table, which reads nothing from Kafka.

The table's commit decides, as for every batch: rows, counts and the outcomes of the dead letters are one decision, and whoever
comes next finishes it in the dead-letter table. A commit is refused if anything but batches of the topic came since the dead
letters were read, so that none lands twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel

from frazil.clients.registry.client import Registry
from frazil.declaration import Pipeline
from frazil.declaration.engines import refuse_foreign
from frazil.declaration.write_modes import identity
from frazil.decode.writers.seen_frames import UnknownSchemas
from frazil.decode.writers.topic_writers import writer_schemas
from frazil.envelopes.chosen_envelope import envelope
from frazil.errors import CatalogUnavailable, Fenced, InvalidInput
from frazil.ingest.batch.staged_records import StagedRecords
from frazil.ingest.preview.preview import UnwrittenEvolution
from frazil.ingest.reporting.events import Reporter
from frazil.ingest.schema.evolution import Evolution
from frazil.ingest.setup.table_setup import resume
from frazil.ingest.spark_errors import explained
from frazil.job.context import JobContext
from frazil.lake.commit.dead_letters.side_table import Look
from frazil.lake.commit.fence import StageAgain
from frazil.lake.iceberg_java import DAMAGED, thrown
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.totals import Counts
from frazil.lake.spark_session import infer_no_constraints
from frazil.replay.open_letters import DeadLetters, Letter, Wanted
from frazil.replay.outcome_commit import ATTEMPTS, Decided, commit_outcomes, dead_letters, settled_tables
from frazil.replay.replay_staging import Place, ReplayPlan, ReplayStaging, Verdicts
from frazil.schemas.dead_letter_outcomes import DeadLetterOutcome
from frazil.schemas.reasons import Reason
from frazil.upsert.resolver_protocol import HASH
from frazil.upsert.stale_keys import parse_hashes

MOST = 50_000
"""Dead letters of one batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a replay has made of dead letters so far, or would make of them.

    `outcomes` counts those that have one now. `failed` counts those that stay open, by the reason of before and that of now. `left`
    are wanted dead letters that were not tried yet.
    """

    pipeline: str
    outcomes: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[tuple[str, str], int] = field(default_factory=dict)
    left: int = 0
    batches: int = 0

    @property
    def tried(self) -> int:
        """The dead letters that were tried."""
        return sum(self.outcomes.values()) + sum(self.failed.values())

    def plus(self, outcomes: Mapping[str, int], failed: Mapping[tuple[str, str], int]) -> Replayed:
        """Return it after one more batch."""
        tried = sum(outcomes.values()) + sum(failed.values())
        return replace(
            self,
            outcomes={name: n for name, n in (Counter(self.outcomes) + Counter(outcomes)).items() if n},
            failed={reasons: n for reasons, n in (Counter(self.failed) + Counter(failed)).items() if n},
            left=max(self.left - tried, 0),
            batches=self.batches + 1,
        )

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        failed = [{"reason": before, "reason_now": now, "count": n} for (before, now), n in sorted(self.failed.items())]
        return {
            "pipeline": self.pipeline,
            "tried": self.tried,
            "outcomes": dict(sorted(self.outcomes.items())),
            "failed": failed,
            "left": self.left,
            "batches": self.batches,
        }


def replay(
    pipeline: Pipeline,
    job: JobContext,
    registry: Registry | None,
    wanted: Wanted,
    *,
    is_dry: bool = False,
    progress: Callable[[Replayed], None] = lambda replayed: None,
    most: int = MOST,
) -> Replayed:
    """Land the wanted open dead letters of a pipeline, as far as they can be decoded today; or, if `is_dry`, change nothing.

    `progress` is called after each batch. Raises `InvalidInput` if there is nothing to replay into, or if dead letters cannot be
    replayed as they were kept, what a run raises before its first batch, and `Fenced` or `StageAgain` if other commits come first
    each time.
    """
    refuse_foreign([pipeline])
    with explained(f"pipeline {pipeline.name}", stopping=job.stopping, redact=job.redact):
        return _Replay(pipeline, job, registry, wanted, is_dry=is_dry, most=most).run(progress)


class _Replay:
    """One replay of one pipeline."""

    def __init__(
        self, pipeline: Pipeline, job: JobContext, registry: Registry | None, wanted: Wanted, *, is_dry: bool, most: int
    ) -> None:
        self._pipeline, self._job, self._wanted, self._is_dry, self._most = pipeline, job, wanted, is_dry, most
        route = pipeline.shape.route
        writers = writer_schemas(pipeline.topic, registry, envelope=envelope(pipeline.envelope), route=route)
        self._report = Reporter(
            lambda event: None, pipeline.name, pipeline.topic.name, job.run, job.clock, pipeline.group
        )
        settled_tables(pipeline, job, finishes=False)
        made = UnwrittenEvolution if is_dry else Evolution
        self._evolution = made(pipeline, job, writers, self._report)
        self._fills = False

    def run(self, progress: Callable[[Replayed], None]) -> Replayed:
        self._begin()
        found = self._tables()
        dead = dead_letters(self._pipeline, self._job, found)
        dead.check_bytes(self._wanted)
        result, after = Replayed(pipeline=self._pipeline.name, left=dead.count(self._wanted)), None
        while not self._job.stopping():
            letters, last = dead.next(self._wanted, after, self._most)
            if last is None:
                break
            result, after = result.plus(*self._batch_or_again(found, dead, letters)), last
            progress(result)
            if not self._is_dry:
                found = self._tables()
                dead = dead_letters(self._pipeline, self._job, found)
        return result

    # ── Before the first batch ──────────────────────────────────────────────────────────────────
    def _begin(self) -> None:
        """Learn the schemas of today, and bring the table to what they need."""
        if self._pipeline.is_change_data:
            infer_no_constraints(self._job.spark)
        self._evolution.refresh()
        if not self._evolution.is_known:
            raise InvalidInput(
                "no schema of the topic is known",
                where=f"topic {self._pipeline.topic.name}",
                do="Register its schema, then replay again",
            )
        if not self._is_dry:
            self._evolution.read_table_again()
            last = resume(self._pipeline, self._job, self._report, *self._evolution.types, *self._evolution.made_of())
            self._evolution.recall(last.schema_ids)

    def _tables(self) -> Look:
        return settled_tables(self._pipeline, self._job, finishes=not self._is_dry)

    # ── One batch ───────────────────────────────────────────────────────────────────────────────
    def _batch_or_again(
        self, found: Look, dead: DeadLetters, letters: Mapping[Letter, str]
    ) -> tuple[Mapping[str, int], Mapping[tuple[str, str], int]]:
        """Land a batch, again if the tables change meanwhile; dead letters that have an outcome by then are left out."""
        for attempt in range(ATTEMPTS):
            try:
                return self._batch(found, dead, letters)
            except (UnknownSchemas, StageAgain, Fenced) as problem:
                if attempt == ATTEMPTS - 1 or self._job.stopping():
                    raise
                if self._is_dry:
                    continue
                if not isinstance(problem, UnknownSchemas):
                    self._begin()
                found = self._tables()
                dead = dead_letters(self._pipeline, self._job, found)
                letters = self._still_open(dead, letters)
        raise AssertionError("the last attempt returns or raises")

    def _still_open(self, dead: DeadLetters, letters: Mapping[Letter, str]) -> Mapping[Letter, str]:
        now, _ = dead.next(self._wanted, _before(min(letters)), self._most) if letters else ({}, None)
        return {letter: reason for letter, reason in letters.items() if letter in now}

    def _batch(
        self, found: Look, dead: DeadLetters, letters: Mapping[Letter, str]
    ) -> tuple[Mapping[str, int], Mapping[tuple[str, str], int]]:
        if not letters:
            return {}, {}
        staging = self._evolution.staging()
        records = dead.records(letters)
        if not self._pipeline.shape.is_masked:  # what a mask hides is on no disk
            records = records.persist(StorageLevel.DISK_ONLY)
        try:
            return self._judged(found, dead, letters, ReplayStaging.of(staging, records))
        finally:
            records.unpersist()

    def _judged(
        self, found: Look, dead: DeadLetters, letters: Mapping[Letter, str], staging: ReplayStaging
    ) -> tuple[Mapping[str, int], Mapping[tuple[str, str], int]]:
        """Judge the dead letters of a batch, land those that can be decoded, and return the outcomes, and those that failed."""
        write = self._pipeline.write  # else an order says whether a record is the last one of its key
        by_stale_keys = write.replaces_rows and (not write.order_columns or staging.mode.deletes_all)
        verdicts = staging.judge(with_hashes=by_stale_keys)
        self._evolution.learn(verdicts.values, verdicts.keys)
        self._job.failpoint("replay.judged")
        landing = {one.place: one for one in letters if one.place not in {*verdicts.failed, *verdicts.filtered}}
        superseded = dict[Place, Letter]()
        if by_stale_keys:
            newest = self._newest_of_stale_keys(found, staging.over(dead.records()), letters)
            applied = {one for one in landing.values() if newest.get(verdicts.hashes[one.place]) == one}
            superseded = {place: one for place, one in landing.items() if one not in applied}
            landing = {one.place: one for one in applied}
        failed = dict(verdicts.failed)
        if not self._is_dry:
            hashes = [verdicts.hashes[place] for place in landing] if by_stale_keys else []
            folded, failed_later = self._land(found, letters, staging, landing, superseded, verdicts, hashes)
            superseded |= {place: landing[place] for place in folded}
            landing = {place: one for place, one in landing.items() if place not in {*folded, *failed_later}}
            failed |= dict.fromkeys(failed_later, Reason.VALUE_UNAVAILABLE.value)
        counts = {
            DeadLetterOutcome.RECOVERED.value: len(landing),
            DeadLetterOutcome.SUPERSEDED.value: len(superseded),
            DeadLetterOutcome.FILTERED.value: len([one for one in letters if one.place in set(verdicts.filtered)]),
        }
        reasons = Counter((before, failed[one.place]) for one, before in letters.items() if one.place in failed)
        return {name: n for name, n in counts.items() if n}, reasons

    def _newest_of_stale_keys(
        self, found: Look, every: ReplayStaging, letters: Iterable[Letter]
    ) -> Mapping[int, Letter]:
        """Return the last dead letter of each stale key, whatever its outcome, by the key's hash."""
        assert found.last is not None
        stale = self._stale_hashes(found, found.last, min(letters).staged_us)
        if not stale:
            return {}
        frame = self._job.spark.createDataFrame([(one,) for one in stale], f"{HASH} long")
        return every.last_of_keys(frame)

    def _stale_hashes(self, found: Look, last: Entry, since_us: int) -> list[int]:
        """Return the stale keys. Raises `InvalidInput` if they are not known since this time, microseconds since 1970."""
        known, where = last.stale_keys, f"table {self._pipeline.table.identifier}"
        what = "the set of stale keys is not known, so it is not known which dead letters are the last of their key"
        do = "Land the topic again in another table, or produce the records again"
        if known is None:
            raise InvalidInput(what, where=where, do=do)
        if known.since > since_us:
            raise InvalidInput(f"{what}: its file was lost", where=where, do=f"Replay later ones (--since), or: {do}")
        if not known.file:
            return []
        try:
            return [int(one) for one in parse_hashes(self._job.iceberg.read_text(found.main, known.file), known.keys)]
        except ValueError:
            raise InvalidInput(f"{what}: its file is damaged", where=where, do=do) from None
        except Py4JJavaError as error:
            if thrown(error) not in DAMAGED and found.main.io().newInputFile(known.file).exists():
                raise CatalogUnavailable(
                    f"the stale keys cannot be read: {thrown(error)}", where=where, do="Try again"
                ) from None
            raise InvalidInput(f"{what}: its file is gone", where=where, do=do) from None

    # ── Its commit ──────────────────────────────────────────────────────────────────────────────
    def _land(
        self,
        found: Look,
        letters: Mapping[Letter, str],
        staging: ReplayStaging,
        landing: Mapping[Place, Letter],
        superseded: Mapping[Place, Letter],
        verdicts: Verdicts,
        hashes: Sequence[int],
    ) -> tuple[Collection[Place], Collection[Place]]:
        """Stage and commit a batch; return the places of records that a later one superseded, and of those that lack a value."""
        last = found.last
        assert last is not None
        assert last.end is not None
        staged = self._staged(staging, landing, last)
        lacking = staged.rows.unresolved
        applied = set(landing) - lacking
        if staged.rows.changes is not None:
            applied = set(staged.rows.changes.applied())
        folded = set(landing) - lacking - applied
        if staged.rows.landed != len(landing) - len(lacking) or not applied <= set(landing):
            what = f"{staged.rows.landed} of {len(landing)} dead letters landed, and {len(lacking)} lack a value"
            raise StageAgain(what, where=f"pipeline {self._pipeline.name}")
        decided = {
            DeadLetterOutcome.RECOVERED: [landing[place] for place in applied],
            DeadLetterOutcome.SUPERSEDED: [*superseded.values(), *(landing[place] for place in folded)],
            DeadLetterOutcome.FILTERED: [one for one in letters if one.place in set(verdicts.filtered)],
            None: [one for one in letters if one.place in {*verdicts.failed, *lacking}],
        }
        terms = dict(staged.rows.terms)
        terms["superseded"] = terms.get("superseded", 0) + len(superseded)
        counts = Counts(
            **terms,
            recovered=staged.rows.landed + len(superseded),
            unmatched=staged.shaped.unmatched,
            late_events=staged.shaped.late_events,
        )
        if not counts.adds_up:
            raise StageAgain(f"the counts of a replay do not add up: {counts}", where=f"pipeline {self._pipeline.name}")
        self._job.failpoint("replay.staged")

        def check(found: Look, now: Entry) -> None:
            if hashes and not set(hashes) <= set(self._stale_hashes(found, now, now.at_ms * 1000)):
                what = "later records of keys landed meanwhile"
                raise StageAgain(what, where=f"pipeline {self._pipeline.name}")

        made = Decided(
            outcomes=decided,
            rows=staged.rows.files,
            changes=staged.rows.changes,
            counts=counts,
            schema_ids=staged.decoding.schema_ids,
            staged_us=round(staged.at.timestamp() * 1_000_000),
            mode=identity(self._pipeline, staged.key),
        )
        commit_outcomes(self._pipeline, self._job, found, made, check)
        return folded, lacking

    def _staged(self, staging: ReplayStaging, landing: Collection[Place], last: Entry) -> StagedRecords:
        assert last.end is not None
        of_these, plan = staging.landing(landing), ReplayPlan.of(last.end, len(landing), fills=self._fills)
        staged = of_these.stage(plan)
        if staged.rows.omits_values:
            self._fills = True
            staged = of_these.stage(ReplayPlan.of(last.end, len(landing), fills=True))
        if staged.read.records != len(landing):
            what = f"{staged.read.records} records were read of {len(landing)} dead letters"
            raise StageAgain(what, where=f"table {self._pipeline.table.dead_letters}")
        return staged


def _before(letter: Letter) -> Letter:
    return replace(letter, offset=letter.offset - 1)
