"""Accept: an operator's decision after a refusal, written into the ledger of the table and of its dead letters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from frazil.declaration import Pipeline
from frazil.declaration.formats import MetadataColumns
from frazil.errors import InvalidInput
from frazil.ingest import acceptance, prepare
from frazil.ingest.acceptance import Acceptance, Accepted
from frazil.ingest.divergence import truncated_log
from frazil.ingest.driver import Driver
from frazil.lake import ledger, places
from frazil.lake.decide import finish_open
from frazil.lake.fence import Batch
from frazil.lake.ledger import Counts, Entry, Offsets
from frazil.lake.lineage import head_follows
from frazil.lake.publish import entry, publish
from frazil.lake.stage import nothing

FLAT, STRUCT, LETTERS = "_kafka_", "_kafka.", ""  # what the columns of a record's place begin with


def accept(pipeline: Pipeline, event: Accepted, reason: str, driver: Driver) -> Acceptance:
    """Write an operator's decision, with its reason, into the pipeline's ledger; returns what it made of it.

    The main table's commit comes last and is the decision; whatever is done before it is done again by accepting again. Raises
    `InvalidInput` if there is nothing to decide, `Fenced` if a driver commits meanwhile.
    """
    work = _Accepting(pipeline, event, reason, driver)
    table = driver.iceberg.load(pipeline.table.identifier)
    last = entry(table, pipeline.name)
    if event is Accepted.LEDGER_LOST:
        decided = work.ledger_lost(last)
    elif last is None or last.end is None:
        raise InvalidInput(
            "the table has no ledger", where=f"table {pipeline.table.identifier}", do="Run the pipeline first"
        )
    else:
        decided = work.decided(last, last.end)
    if decided.goes_back:
        work.take_dead_letters_back(decided)
    work.write(pipeline.table.identifier, decided, held=last.end if last else None)
    return decided


@dataclass(frozen=True, slots=True)
class _Accepting:
    pipeline: Pipeline
    event: Accepted
    reason: str
    driver: Driver

    def decided(self, last: Entry, held: Offsets) -> Acceptance:
        """The ledger that the decision makes."""
        driver, topic = self.driver, self.pipeline.topic
        if self.event is Accepted.SIDE_TABLE_REPLACED:
            return Acceptance(self.event, held, held, self._undelivered(last))
        self._finish_open()
        if self.event in (Accepted.ROLLED_BACK_REPLAY, Accepted.ROLLED_BACK_HOLD):
            main = driver.iceberg.load(self.pipeline.table.identifier)
            head = prepare.head_behind_tag(driver.iceberg, main, self.pipeline.name)
            before = head.end if head else None
            if head is None and not head_follows(driver.iceberg, main, last):
                return self._unknown(held)
            if self.event is Accepted.ROLLED_BACK_REPLAY:
                return acceptance.rolled_back_replay(held, before)
            return acceptance.rolled_back_hold(held, before, self._kept(head, held))
        if self.event is Accepted.REJECTED_SHARE:
            return Acceptance(self.event, held, held)
        spans = driver.kafka.offsets(topic.name, topic.isolation)
        topic_id = driver.kafka.topic(topic.name).topic_id
        if self.event is Accepted.TOPIC_RECREATED:
            return acceptance.topic_recreated(held, topic_id, spans)
        if self.event in (Accepted.LOG_TRUNCATED, Accepted.LOG_TRUNCATED_REPLAY):
            return truncated_log(self.pipeline, driver, self.event, held, topic_id, spans)
        return acceptance.offsets_lost(held, topic_id, spans)

    def _unknown(self, held: Offsets) -> Acceptance:
        """The decision on a table of whose history no commit of the pipeline is left: it can be held, not replayed."""
        if self.event is Accepted.ROLLED_BACK_HOLD:
            return Acceptance(self.event, held, held)
        raise InvalidInput(
            "the snapshots that say where to begin again were expired by another tool",
            where=f"table {self.pipeline.table.identifier}",
            do=f"`frazil verify {self.pipeline.name} --deep` counts the missing rows, "
            f"`frazil accept {self.pipeline.name} rolled-back-hold --reason …` goes on without them",
        )

    def ledger_lost(self, last: Entry | None) -> Acceptance:
        """The offsets after the last row or dead letter of each partition."""
        table, topic = self.pipeline.table, self.pipeline.topic
        if last is not None:
            raise InvalidInput(
                "the ledger is not lost: the table's tag names it",
                where=f"table {table.identifier}",
                do="Nothing is to be decided",
            )
        first: dict[int, int] = {}
        after: dict[int, int] = {}
        for identifier, prefix in ((table.identifier, self._prefix), (table.dead_letters, LETTERS)):
            if not self.driver.iceberg.exists(identifier):
                continue
            for p, found in places.found(self.driver.spark, self._named(identifier), topic.name, prefix).items():
                first[p] = min(first.get(p, found.first), found.first)
                after[p] = max(after.get(p, found.after), found.after)
        topic_id = self.driver.kafka.topic(topic.name).topic_id
        before, now = (Offsets(topic.name, topic_id, dict(sorted(at.items()))) for at in (first, after))
        return Acceptance(self.event, before, now)

    def take_dead_letters_back(self, decided: Acceptance) -> None:
        """Have the dead-letter table's ledger go back too, or it would take what comes for delivered.

        After a rollback its rows of the records that are landed again go first: their verdict may be another now.
        """
        identifier = self.pipeline.table.dead_letters
        if not self.driver.iceberg.exists(identifier):
            return
        if self.event is Accepted.ROLLED_BACK_REPLAY:
            places.remove_after(self.driver.spark, self._named(identifier), decided.after)
        last = entry(self.driver.iceberg.load(identifier), self.pipeline.name)
        if last is not None and last.end is not None and not last.end.same_as(decided.after):
            self.write(identifier, Acceptance(self.event, last.end, decided.after), held=last.end)

    def write(self, identifier: str, decided: Acceptance, *, held: Offsets | None) -> None:
        """Commit the decision to one table, with an empty snapshot."""
        driver = self.driver
        at = datetime.fromtimestamp(driver.clock(), UTC).isoformat()
        lost = {str(p): n for p, n in decided.lost.items()}
        batch = Batch(
            pipeline=self.pipeline.name,
            run=driver.run,
            version=driver.version,
            start=decided.before,
            end=decided.after,
            held=held,
            topic_id=decided.after.topic_id,
            counts=Counts(gaps=decided.lost),
            accepted=ledger.canonical({"event": self.event.value, "reason": self.reason, "at": at, "lost": lost}),
            over_rollback=self.event in (Accepted.ROLLED_BACK_REPLAY, Accepted.ROLLED_BACK_HOLD),
        )
        publish(
            driver.iceberg,
            nothing(driver.iceberg, identifier, at=driver.clock()),
            batch,
            is_side=identifier == self.pipeline.table.dead_letters,
            clock=driver.clock,
            wait=driver.wait,
        )

    def _finish_open(self) -> None:
        """What the last decision left open is finished first: it stands, whatever is decided now."""
        table = self.pipeline.table
        finish_open(
            self.driver.iceberg,
            table.identifier,
            table.dead_letters,
            self.pipeline.name,
            run=self.driver.run,
            version=self.driver.version,
            wait=self.driver.wait,
        )

    def _kept(self, head: Entry | None, held: Offsets) -> Mapping[int, int]:
        """Of the offsets between head and tag, those that are accounted for without a row: dead letters, skips and gaps."""
        if head is None or head.end is None:
            return {}
        kept: dict[int, int] = {}
        letters = self.pipeline.table.dead_letters
        if self.driver.iceberg.exists(letters):
            kept |= places.counted(self.driver.spark, self._named(letters), head.end, held, LETTERS)
        return kept

    def _undelivered(self, last: Entry) -> dict[int, int]:
        """By partition, the dead letters that were decided and never appended."""
        table, iceberg = self.pipeline.table, self.driver.iceberg
        main = iceberg.load(table.identifier)
        is_open = last.side is not None and main.io().newInputFile(last.side).exists()  # it goes when all is delivered
        decision = json.loads(iceberg.read_text(main, last.side or "")) if is_open else {"tables": []}
        gone = [
            side
            for side in decision["tables"]
            if not iceberg.exists(side["table"]) or str(iceberg.load(side["table"]).uuid()) != side["uuid"]
        ]
        if not gone or last.start is None or last.end is None or last.counts is None:
            raise InvalidInput(
                f"there is nothing to accept: {self.event} has not happened",
                where=f"table {table.dead_letters}",
                do="Run the pipeline; a refusal names the command that decides it",
            )
        landed = places.counted(self.driver.spark, self._named(table.identifier), last.start, last.end, self._prefix)
        counts = last.counts
        lost = {
            p: end - last.start.at.get(p, end) - landed.get(p, 0) - counts.skipped_at.get(p, 0) - counts.gaps.get(p, 0)
            for p, end in last.end.at.items()
        }
        undelivered = sum(side["rows"] for side in gone)
        if sum(lost.values()) != undelivered:
            raise InvalidInput(
                f"{undelivered} dead letters were not delivered, and the table lacks {sum(lost.values())} records of that batch",
                where=f"table {table.identifier}",
                do=f"`frazil verify {self.pipeline.name} --deep` says what is wrong; mend that first",
            )
        return {p: n for p, n in lost.items() if n}

    def _named(self, identifier: str) -> str:
        return f"{self.driver.iceberg.name}.{identifier}"

    @property
    def _prefix(self) -> str:
        return STRUCT if self.pipeline.table.metadata_columns is MetadataColumns.STRUCT else FLAT
