"""Accept: an operator's decision after a refusal, written into the ledger. Nothing else changes, and no row does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from frazil.declaration import Pipeline
from frazil.errors import FrazilError
from frazil.ingest import prepare
from frazil.ingest.plan import Span
from frazil.ingest.run import Driver
from frazil.lake import ledger
from frazil.lake.jvm import Iceberg
from frazil.lake.ledger import Entry, Offsets
from frazil.lake.publish import Batch, entry, head_follows, publish
from frazil.lake.stage import nothing


class Accepted(StrEnum):
    """What an operator may decide, each after the refusal that names it.

    `TOPIC_RECREATED`: land the new topic from its beginning. `LOG_TRUNCATED`: go on from the topic's end where it is before the
    ledger's. `OFFSETS_LOST`: record the gap that retention tore and go on behind it. `ROLLED_BACK_REPLAY`: the rollback was
    meant to land the records again. `ROLLED_BACK_HOLD`: it was meant to be rid of the rows; go on where the ledger stands.
    `LEDGER_LOST`: take the offsets from the rows themselves. `SIDE_TABLE_REPLACED`: let undelivered dead letters go.
    """

    TOPIC_RECREATED = "topic-recreated"
    LOG_TRUNCATED = "log-truncated"
    OFFSETS_LOST = "offsets-lost"
    ROLLED_BACK_REPLAY = "rolled-back-replay"
    ROLLED_BACK_HOLD = "rolled-back-hold"
    LEDGER_LOST = "ledger-lost"
    SIDE_TABLE_REPLACED = "side-table-replaced"


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What was written: the ledger before and after, and offsets given up for lost, by partition."""

    event: Accepted
    before: Offsets | None
    after: Offsets
    lost: Mapping[int, int]


def decided(
    event: Accepted, held: Offsets, topic_id: str, spans: Mapping[int, Span], *, replayed: Offsets | None = None
) -> Acceptance:
    """The ledger that a decision makes of `held`, given what the topic is now.

    `replayed` is the ledger of the table's head after a rollback. Raises `FrazilError` if the event has not happened.
    """
    same_topic = held.topic_id == topic_id
    lost: dict[int, int] = {}
    match event:
        case Accepted.TOPIC_RECREATED:
            happened = not same_topic
            at = {p: span.earliest for p, span in spans.items()}
        case Accepted.LOG_TRUNCATED:
            at = {p: min(held.at.get(p, span.earliest), span.stable) for p, span in spans.items()}
            happened = same_topic and (
                held.at.keys() > spans.keys() or any(held.at.get(p, 0) > o for p, o in at.items())
            )
        case Accepted.OFFSETS_LOST:
            lost = {p: s.earliest - held.at[p] for p, s in spans.items() if held.at.get(p, s.earliest) < s.earliest}
            happened = same_topic and bool(lost)
            at = {**held.at, **{p: spans[p].earliest for p in lost}}
        case Accepted.ROLLED_BACK_REPLAY:
            happened = replayed is not None
            at = dict((replayed or held).at)
            topic_id = (replayed or held).topic_id
        case _:
            happened, at, topic_id = True, dict(held.at), held.topic_id
    if not happened:
        raise FrazilError(
            f"there is nothing to accept: {event} has not happened",
            where=f"topic {held.topic}",
            do="Run the pipeline; a refusal names the command that decides it",
        )
    return Acceptance(event, held, Offsets(held.topic, topic_id, dict(sorted(at.items()))), lost)


def accept(pipeline: Pipeline, event: Accepted, reason: str, driver: Driver) -> Acceptance:
    """Write an operator's decision, with its reason, into the pipeline's ledger; returns what it made of it."""
    topic, iceberg = pipeline.topic, driver.iceberg
    spans = driver.kafka.offsets(topic.name, topic.isolation)
    topic_id = driver.kafka.topic(topic.name).topic_id
    table = iceberg.load(pipeline.table.identifier)
    last = entry(table, pipeline.name)
    if event is Accepted.LEDGER_LOST:
        acceptance = _from_rows(pipeline, driver, last, topic_id)
    else:
        if last is None or last.end is None:
            raise FrazilError(
                "the table has no ledger", where=f"table {pipeline.table.identifier}", do="Run the pipeline first"
            )
        acceptance = decided(event, last.end, topic_id, spans, replayed=_replayed(iceberg, pipeline))
    at = datetime.fromtimestamp(driver.clock(), UTC).isoformat()
    lost = {str(p): n for p, n in acceptance.lost.items()}
    batch = Batch(
        pipeline=pipeline.name,
        run=driver.run,
        version=driver.version,
        start=acceptance.after,
        end=acceptance.after,
        held=last.end if last else None,
        topic_id=acceptance.after.topic_id,
        accepted=ledger.canonical({"event": event.value, "reason": reason, "at": at, "lost": lost}),
        over_rollback=event in (Accepted.ROLLED_BACK_REPLAY, Accepted.ROLLED_BACK_HOLD),
    )
    publish(iceberg, nothing(iceberg, pipeline.table.identifier, at=driver.clock()), batch, wait=driver.wait)
    return acceptance


def _replayed(iceberg: Iceberg, pipeline: Pipeline) -> Offsets | None:
    """The ledger of the head, if the head is not where the tag is."""
    table = iceberg.load(pipeline.table.identifier)
    tagged = entry(table, pipeline.name)
    if head_follows(table, tagged):
        return None
    found = prepare.newest_before_head(table, pipeline.name)
    return found.end if found else None


def _from_rows(pipeline: Pipeline, driver: Driver, last: Entry | None, topic_id: str) -> Acceptance:
    """The offsets after the last one of each partition, over the table and its dead letters."""
    if last is not None:
        raise FrazilError(
            "the ledger is not lost: the table's tag names it",
            where=f"table {pipeline.table.identifier}",
            do="Nothing is to be decided",
        )
    at = prepare.offsets_after_rows(driver.spark, driver.iceberg, pipeline)
    return Acceptance(Accepted.LEDGER_LOST, None, Offsets(pipeline.topic.name, topic_id, at), {})
