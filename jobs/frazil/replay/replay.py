"""Land open dead letters again, batch by batch. Each batch is one commit of the table, which reads nothing from Kafka.

The table's commit decides, as for every batch: rows, counts and the outcomes of the dead letters are one decision, and whoever
comes next finishes it in the dead-letter table. A commit is refused if anything but batches of the topic came since the dead
letters were read, so that none lands twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from pyspark import StorageLevel

from frazil.clients.registry.client import Registry
from frazil.declaration import Pipeline
from frazil.declaration.engines import refuse_foreign
from frazil.declaration.write_modes import identity
from frazil.decode.writers.seen_frames import MOST as MOST_FRAMES
from frazil.decode.writers.seen_frames import UnknownSchemas
from frazil.decode.writers.topic_writers import writer_schemas
from frazil.envelopes.chosen_envelope import envelope
from frazil.errors import Fenced, InvalidInput
from frazil.ingest.batch.staged_records import StagedRecords
from frazil.ingest.preview.preview import UnwrittenEvolution
from frazil.ingest.reporting.events import Reporter
from frazil.ingest.schema.evolution import Evolution
from frazil.ingest.setup.table_setup import resume
from frazil.ingest.spark_errors import explained
from frazil.job.context import JobContext
from frazil.lake.commit.dead_letters.side_table import Look
from frazil.lake.commit.fence import StageAgain
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.totals import Counts
from frazil.lake.spark_session import infer_no_constraints
from frazil.replay.key_order import ORDER_UNKNOWN, KeyOrder, Order
from frazil.replay.open_letters import DeadLetters, Letter, Wanted
from frazil.replay.outcome_commit import ATTEMPTS, Decided, commit_outcomes, dead_letters, settled_tables
from frazil.replay.replay_staging import Place, ReplayPlan, ReplayStaging, Verdicts
from frazil.schemas.dead_letter_outcomes import DeadLetterOutcome
from frazil.schemas.reasons import Reason
from frazil.upsert.stale_keys import no_keys

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


@dataclass(frozen=True, slots=True)
class _Batch:
    """The outcomes of one batch, those that failed as `Replayed` counts them, and the last dead letter that was tried."""

    outcomes: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[tuple[str, str], int] = field(default_factory=dict)
    last: Letter | None = None


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
        self._order = KeyOrder(pipeline, job)

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
            made = self._batch_or_again(found, dead, letters)
            result, after = result.plus(made.outcomes, made.failed), made.last
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
    def _batch_or_again(self, found: Look, dead: DeadLetters, letters: Mapping[Letter, str]) -> _Batch:
        """Land a batch, again if the tables change meanwhile; dead letters that have an outcome by then are left out.

        One with more unknown schemas than are looked up at once is cut, and so are all later ones.
        """
        last = max(letters)
        for attempt in range(ATTEMPTS):
            try:
                return replace(self._batch(found, dead, letters), last=last)
            except (UnknownSchemas, StageAgain, Fenced) as problem:
                if attempt == ATTEMPTS - 1 or self._job.stopping():
                    raise
                if isinstance(problem, UnknownSchemas):
                    if (most := problem.most_rows or (MOST_FRAMES if attempt >= ATTEMPTS // 2 else None)) is not None:
                        self._most = min(self._most, most)
                        letters = dict(islice(letters.items(), self._most))
                        last = max(letters)
                elif not self._is_dry:
                    self._begin()
                if self._is_dry:
                    continue
                found = self._tables()
                dead = dead_letters(self._pipeline, self._job, found)
                letters = self._still_open(dead, letters)
        raise AssertionError("the last attempt returns or raises")

    def _still_open(self, dead: DeadLetters, letters: Mapping[Letter, str]) -> Mapping[Letter, str]:
        now, _ = dead.next(self._wanted, _before(min(letters)), self._most) if letters else ({}, None)
        return {letter: reason for letter, reason in letters.items() if letter in now}

    def _batch(self, found: Look, dead: DeadLetters, letters: Mapping[Letter, str]) -> _Batch:
        if not letters:
            return _Batch()
        staging = self._evolution.staging()
        records = dead.records(letters)
        if not self._pipeline.shape.is_masked:  # what a mask hides is on no disk
            records = records.persist(StorageLevel.DISK_ONLY)
        try:
            return self._judged(found, dead, letters, ReplayStaging.of(staging, records))
        finally:
            records.unpersist()

    def _judged(self, found: Look, dead: DeadLetters, letters: Mapping[Letter, str], staging: ReplayStaging) -> _Batch:
        """Judge the dead letters of a batch, land those that can be decoded, and return the outcomes, and those that failed."""
        write = self._pipeline.write  # else an order says whether a record is the last one of its key
        by_stale_keys = write.replaces_rows and (not write.order_columns or staging.mode.deletes_all)
        staged, every = None, {one.place: one for one in letters}
        if not (by_stale_keys or self._is_dry):
            staged = self._staged(staging, every, found)
        if staged is not None and staged.rows.landed == len(letters):
            verdicts = Verdicts()
        else:  # some do not land, or only some may
            verdicts = staging.judge(with_hashes=by_stale_keys)
            self._evolution.learn(verdicts.values, verdicts.keys)
        self._job.failpoint("replay.judged")
        filtered = {place: one for place, one in every.items() if place in verdicts.filtered}
        landing = {place: one for place, one in every.items() if not (place in filtered or place in verdicts.failed)}
        order = Order(landing, {}, {})
        if by_stale_keys:
            order = self._order.of(found, dead, staging, landing, verdicts.hashes)
        landing, superseded = {**order.landing}, {**order.superseded}
        failed = {**verdicts.failed, **dict.fromkeys(order.undecided, ORDER_UNKNOWN)}
        if not self._is_dry:
            closed = {
                DeadLetterOutcome.SUPERSEDED: [*superseded.values()],
                DeadLetterOutcome.FILTERED: [*filtered.values()],
                None: [one for one in letters if one.place in failed],
            }
            folded, failed_later = self._land(found, staged or self._staged(staging, landing, found), closed, order)
            superseded |= {place: landing[place] for place in folded}
            landing = {place: one for place, one in landing.items() if place not in {*folded, *failed_later}}
            failed |= dict.fromkeys(failed_later, Reason.VALUE_UNAVAILABLE.value)
        counts = {
            DeadLetterOutcome.RECOVERED.value: len(landing),
            DeadLetterOutcome.SUPERSEDED.value: len(superseded),
            DeadLetterOutcome.FILTERED.value: len(filtered),
        }
        reasons = Counter((before, failed[one.place]) for one, before in letters.items() if one.place in failed)
        return _Batch({name: n for name, n in counts.items() if n}, reasons)

    # ── Its commit ──────────────────────────────────────────────────────────────────────────────
    def _land(
        self,
        found: Look,
        staged: StagedRecords,
        closed: Mapping[DeadLetterOutcome | None, Sequence[Letter]],
        order: Order,
    ) -> tuple[Collection[Place], Collection[Place]]:
        """Commit a staged batch; return the places of records that a later one superseded, and of those that lack a value.

        `closed` are its dead letters that do not land, by outcome; None is that of those that stay open.
        """
        landing, changes, lacking = order.landing, staged.rows.changes, staged.rows.unresolved
        if changes is not None and order.unknown:
            changes.rejected = no_keys(-order.unknown)
        applied = {*landing} - lacking if changes is None else {*changes.applied()}
        folded = {*landing} - lacking - applied
        if staged.rows.landed != len(landing) - len(lacking) or not applied <= landing.keys():
            what = f"{staged.rows.landed} of {len(landing)} dead letters landed, and {len(lacking)} lack a value"
            raise StageAgain(what, where=f"pipeline {self._pipeline.name}")
        superseded = closed[DeadLetterOutcome.SUPERSEDED]
        decided = {
            **closed,
            DeadLetterOutcome.RECOVERED: [landing[place] for place in applied],
            DeadLetterOutcome.SUPERSEDED: [*superseded, *(landing[place] for place in folded)],
            None: [*closed[None], *(landing[place] for place in lacking)],
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
            if order.hashes or order.unknown:
                self._order.check(found, now, order)

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

    def _staged(self, staging: ReplayStaging, landing: Collection[Place], found: Look) -> StagedRecords:
        """Stage the records of these places."""
        assert found.last is not None
        assert found.last.end is not None
        of_these, end = staging.landing(landing), found.last.end
        staged = of_these.stage(ReplayPlan.of(end, len(landing), fills=self._fills))
        if staged.rows.omits_values:
            self._fills = True
            staged = of_these.stage(ReplayPlan.of(end, len(landing), fills=True))
        if staged.read.records != len(landing):
            what = f"{staged.read.records} records were read of {len(landing)} dead letters"
            raise StageAgain(what, where=f"table {self._pipeline.table.dead_letters}")
        return staged


def _before(letter: Letter) -> Letter:
    return replace(letter, offset=letter.offset - 1)
