"""Facts of pages for tests: of a landed table as PyIceberg leaves it, and of many pipelines in all states."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyiceberg.types import LongType, StringType

from frazil.audit.files.proofs import ProofFolder
from frazil.audit.verify import verify
from frazil.clients.kafka import Span, TopicOffsets
from frazil.clients.secrets import Redactor, Secrets
from frazil.dead_letters.diagnosis import Attempt
from frazil.dead_letters.listing import DeadLetter
from frazil.dead_letters.show import DeadLetterView, Part, Writer
from frazil.declaration import Json, Pipeline, Table, Topic
from frazil.page.facts import Detail, Facts, Overview
from frazil.page.server import address, bound, serving
from frazil.status.pipeline_status import PartitionStatus, PipelineStatus, State
from tests.audit.audited_table import Landed

COMMAND = "frazil accept {} log-truncated --reason …"
HOURS = 3.5
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u202e\x1b[31m{{ 7*7 }}"


class Broker:
    """Kafka with these offsets."""

    def __init__(self, offsets: Mapping[str, TopicOffsets]) -> None:
        self._offsets = offsets

    def offsets_of(self, topics: object) -> dict[object, TopicOffsets]:
        return {one: self._offsets[one[0]] for one in topics}


def landed_orders(folder: Path) -> Landed:
    """Return orders of 18 batches in 3.5 hours, with dead letters of three reasons and an added column."""
    landed = Landed(folder, value_format="json")
    columns = Json(columns=("order_id long",))
    landed.pipeline = replace(landed.pipeline, topic=Topic("orders", value=columns), name="orders")
    at = {0: 0, 1: 0}
    for batch in range(18):
        at = {0: at[0] + 40 + 9 * batch % 50, 1: at[1] + 30 + batch}
        bad = [(0, at[0] - 2), (1, at[1] - 1)] if batch % 5 == 2 else []
        reason = ("too_short", "undecodable", "unknown_schema")[batch // 5 % 3]
        value = b'{"order_id": "no number", "note": "' + b"x" * 40 + b'"}'
        landed.land(at, rejected=dict.fromkeys(bad, value), reason=reason)
        if batch == 9:
            with landed.table.update_schema() as schema:
                schema.add_column("discount_code", StringType()).add_column("items", LongType())
    _spread(landed)
    return landed


def _spread(landed: Landed) -> None:
    """Give the snapshots times of the last hours."""
    now = time.time()

    def edit(document: dict[str, object]) -> None:
        snapshots = document["snapshots"]
        assert isinstance(snapshots, list)
        for number, one in enumerate(snapshots):
            back = HOURS * 3600 * (1 - number / (len(snapshots) - 1))
            one["timestamp-ms"] = round((now - 20 - back) * 1000)
            one["summary"]["frazil.valid-through"] = str(one["timestamp-ms"] - 2_000)

    landed.edit_metadata(edit)


def facts_of(
    landed: Landed, *more: Pipeline, proofs: Path, secrets: Secrets | None = None, ends: int | None = None
) -> Facts:
    """Return the facts of a landed table; its broker has `ends` at each partition, or does not run."""
    declared = (landed.pipeline, *more)
    facts = Facts(landed.environment, "test", secrets or Secrets({}), lambda report: declared, ProofFolder(proofs))
    if ends is not None:
        topics = {
            one.topic.name: TopicOffsets(topic_id="T1", spans={0: Span(0, ends), 1: Span(0, ends)}) for one in declared
        }
        looking = facts._looking
        services = looking._services
        looking._services = lambda *of: replace(services(*of), kafka=lambda: Broker(topics), stopped="")
    return facts


def proven(landed: Landed, folder: Path) -> None:
    """Verify a landed table, so that the folder remembers it."""
    verify(landed.pipeline, landed.lake, proofs=ProofFolder(folder), wait=lambda seconds: None)


def many(count: int) -> tuple[PipelineStatus, ...]:
    """Return the status of pipelines in all states."""
    return tuple(_status(number) for number in range(count))


def _status(number: int) -> PipelineStatus:
    name, of = f"orders_{number}", ("shop", "billing", "clicks")[number % 3]
    empty = PipelineStatus(pipeline=name, topic=f"{of}.orders.v{number}", table=f"{of}.{name}")
    unlike = {23: State.WAITING, 31: State.NO_TABLE, 39: State.UNKNOWN}.get(number % 60)
    if unlike is not None:
        why = {State.WAITING: f"no schema in {empty.topic}-value", State.UNKNOWN: "no answer within 10 s"}
        return replace(empty, state=unlike, why=why.get(unlike, ""))
    counts = {"rows": number * 104_729, "bytes": number * 9_500_000, "rejected_24h": 0 if number % 11 else 12}
    one = replace(empty, freshness_seconds=4.0 + number, read_per_second=number * 7.3 % 900, **counts)
    if number % 50 == 17:
        command = COMMAND.format(name)
        why = f"pipeline {name}: the topic ends at offset 150, and the table holds 200. Run `{command}`"
        return replace(one, state=State.STOPPED, why=why, commands=(command,), record=(one.topic, 0, 200))
    is_behind = number % 9 == 4
    offsets = (PartitionStatus(partition=0, held=9_000, stable=9_000 + is_behind * number * 31),)
    return replace(one, state=State.BEHIND if is_behind else State.CAUGHT_UP, partitions=offsets)


class GivenFacts:
    """Facts that a test gives; counts what is asked."""

    def __init__(
        self, rows: tuple[PipelineStatus, ...], detail: Any = None, letter: Any = None, notes: Any = ()
    ) -> None:
        self.environment, self.redactor = "production", Redactor()
        self.rows, self.notes, self._detail, self._letter = rows, notes, detail, letter
        self.asked: list[str] = []
        self.answers = threading.Event()
        self.answers.set()

    def overview(self) -> Overview:
        self.asked.append("overview")
        self.answers.wait(30)
        return Overview(environment=self.environment, at=time.time(), rows=self.rows, notes=self.notes)

    def knows(self, name: str) -> bool:
        return bool(self.asked) and any(one.pipeline == name for one in self.rows)

    def detail(self, name: str) -> Detail:
        self.asked.append(name)
        status = next(one for one in self.rows if one.pipeline == name)
        return replace(self._detail or Detail(status=status, at=time.time()), status=status)

    def letter(self, name: str, place: tuple[int, int]) -> DeadLetterView | None:
        self.asked.append(f"{name} {place}")
        return self._letter


@contextmanager
def served(facts: object) -> Iterator[str]:
    """Serve facts on a free port; the address ends with a slash."""
    listening = bound(0, is_usual=False)
    with serving(facts, listening):
        yield address(listening)


def hostile_letter() -> DeadLetterView:
    """Return a dead letter of which each text is hostile."""
    tried, writer = Attempt(what=HOSTILE, path=HOSTILE, decoded=HOSTILE, value=HOSTILE), Writer(problem=HOSTILE)
    part, at = Part(data=HOSTILE.encode(), writer=writer, attempt=tried), datetime(2026, 1, 31, tzinfo=UTC)
    why = {"reason": HOSTILE, "stage": HOSTILE, "message": HOSTILE, "run": HOSTILE, "key": HOSTILE.encode()}
    one = DeadLetter(partition=0, offset=7, schema_id=1, timestamp=at, rejected_at=at, **why)
    names = {"pipeline": "orders", "table": HOSTILE, "topic": HOSTILE, "masked": HOSTILE}
    return DeadLetterView(letter=one, headers=((HOSTILE, HOSTILE.encode()),), key=part, value=part, **names)


def other_pipelines() -> tuple[Pipeline, ...]:
    """Return two pipelines without tables."""
    return (
        Pipeline(topic=Topic("clicks", value="text"), table=Table("shop.clicks")),
        Pipeline(topic=Topic("payments", value="avro"), table=Table("shop.payments")),
    )
