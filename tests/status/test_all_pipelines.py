"""One row for each pipeline: its state by its table and its topic, and a reason where something cannot be read."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from frazil.clients.daemon_threads import DaemonThreads
from frazil.clients.kafka import Span, TopicOffsets
from frazil.declaration import Pipeline, Table, Topic, Upsert
from frazil.declaration.options import Isolation
from frazil.errors import KafkaUnavailable, TopicMissing
from frazil.lake.ledger.stop import Stop, property_name
from frazil.status import all_pipelines as module
from frazil.status.all_pipelines import Services, all_pipelines, states, totals
from frazil.status.pipeline_status import PipelineStatus, State, status_of
from tests.audit.audited_table import Landed
from tests.support.fake_registry import FakeRegistry
from tests.support.shop import ORDER

THREADS = DaemonThreads(4, name="test")


class Topics:
    """Offsets by topic, or by topic and isolation, or the error of one; or an error of all."""

    def __init__(self, found: Mapping[Any, Any], *, down: bool = False) -> None:
        self._found, self._down = found, down
        self.asked = 0

    def offsets_of(self, topics: Any) -> dict[Any, Any]:
        self.asked += 1
        if self._down:
            raise KafkaUnavailable("k:9092 did not answer within 5 s", where="topics")
        missing = {one: TopicMissing("no such topic", where=f"topic {one[0]}") for one in topics}
        return {one: self._found.get(one, self._found.get(one[0], missing[one])) for one in topics}


def ends(*stable: int, topic_id: str = "T1", earliest: int = 0) -> TopicOffsets:
    return TopicOffsets(topic_id=topic_id, spans={p: Span(earliest, end) for p, end in enumerate(stable)})


@pytest.fixture
def landed(tmp_path: Path) -> Landed:
    lake = Landed(tmp_path)
    lake.land({0: 100, 1: 50}, rejected=[(0, 7), (0, 8)])
    lake.land({0: 200, 1: 60}, rejected=[(0, 150)])
    return lake


def look(
    landed: Landed, topics: Topics | None, *more: Pipeline, registry: Any = None, now: float = 0
) -> list[PipelineStatus]:
    at = now or newest(landed)
    services = Services(
        lake=landed.lake,
        kafka=(lambda: topics) if topics is not None else None,  # type: ignore[arg-type,return-value]
        registry=lambda: registry,
        stopped="the broker does not run",
    )
    return all_pipelines([landed.pipeline, *more], services, THREADS, now=lambda: at)


def newest(landed: Landed) -> float:
    return max(s.timestamp_ms for s in landed.table.metadata.snapshots) / 1000


def state(landed: Landed, offsets: TopicOffsets | None) -> str:
    return look(landed, Topics({"orders": offsets} if offsets else {}))[0].text


def test_a_pipeline_is_caught_up_or_behind_by_its_records(landed: Landed) -> None:
    (row,) = look(landed, Topics({"orders": ends(200, 60)}))
    assert (row.state, row.lag, row.lag_seconds, row.last_commit_seconds) == (State.CAUGHT_UP, 0, 0.0, 0.0)
    assert (row.rows, row.rejected_24h, row.is_all_rejected) == (257, 3, True)
    assert (row.data_files, row.delete_files) == (4, 0)
    assert row.bytes
    assert state(landed, ends(1204, 260)) == "behind 1,204"
    assert state(landed, ends(200, 60, 5)) == "behind 5"  # of an added partition, from its beginning


@pytest.mark.parametrize(
    ("offsets", "events"),
    [
        (ends(200, 60, topic_id="T2"), ("topic-recreated",)),
        (ends(150, 60), ("log-truncated", "log-truncated-replay")),
        (ends(300, 300, earliest=210), ("offsets-lost",)),
    ],
)
def test_a_decision_that_an_operator_must_make_is_a_stop_with_its_commands(
    landed: Landed, offsets: TopicOffsets, events: tuple[str, ...]
) -> None:
    (row,) = look(landed, Topics({"orders": offsets}))
    assert row.text == "stopped"
    assert row.commands == tuple(f"frazil accept orders {event} --reason …" for event in events)
    assert all(command in row.why for command in row.commands)


STOP = Stop(
    error="RejectedRecords",
    message="one record cannot be landed",
    commands=("frazil accept orders rejected-records --reason …",),
    record=("orders", 0, 200),
    at={0: 200, 1: 60},
)


def noted(landed: Landed, stop: Stop) -> None:
    text = json.dumps(asdict(stop))
    landed.table.transaction().set_properties({property_name("orders"): text}).commit_transaction()


def test_a_stop_that_the_table_has_is_shown_with_reason_record_and_commands(landed: Landed) -> None:
    noted(landed, STOP)
    for topics in (Topics({"orders": ends(3222, 60)}), None):
        (row,) = look(landed, topics)
        assert (row.state, row.why, row.commands) == (State.STOPPED, STOP.message, STOP.commands)
        assert row.document()["record"] == {"topic": "orders", "partition": 0, "offset": 200}
    shown = status_of(landed.pipeline, landed.lake.table("shop.orders"))
    assert (shown.why, shown.commands) == (STOP.message, STOP.commands)
    assert shown.document(is_full=True)["record"] == {"topic": "orders", "partition": 0, "offset": 200}


def test_a_stop_at_offsets_that_the_table_has_passed_is_over(landed: Landed) -> None:
    noted(landed, replace(STOP, at={0: 100, 1: 50}))
    assert state(landed, ends(1204, 260)) == "behind 1,204"


@pytest.mark.parametrize(("end", "state"), [(200, State.CAUGHT_UP), (260, State.CAUGHT_UP), (199, State.STOPPED)])
def test_a_transaction_that_was_read_while_it_was_open_is_waited_for(landed: Landed, end: int, state: State) -> None:
    """The pipeline read uncommitted records before: the log ends at the last stable offset only for those who wait."""
    topic = replace(landed.pipeline.topic, transactional=True)
    waiting = replace(landed.pipeline, topic=topic, name=landed.pipeline.name)
    landed.pipeline = waiting
    found = {("orders", Isolation.READ_COMMITTED): ends(150, 60), ("orders", Isolation.READ_UNCOMMITTED): ends(end, 60)}
    (row,) = look(landed, Topics(found))
    assert row.state is state


def test_a_table_that_was_rolled_back_needs_a_decision_also_without_a_broker(landed: Landed) -> None:
    landed.table.manage_snapshots().rollback_to_snapshot(landed.table.metadata.snapshots[-2].snapshot_id).commit()
    for topics in (Topics({"orders": ends(200, 60)}), None):
        (row,) = look(landed, topics)
        assert row.text == "stopped"
        assert [command.split()[3] for command in row.commands] == ["rolled-back-replay", "rolled-back-hold"]


def test_without_an_answer_of_the_broker_the_table_is_shown_all_the_same(landed: Landed) -> None:
    (row,) = look(landed, Topics({}, down=True))
    assert (row.text, row.lag, row.rows) == ("unknown", None, 257)
    assert row.why == "topics: k:9092 did not answer within 5 s"
    assert look(landed, None)[0].why == "the broker does not run"
    assert look(landed, Topics({}))[0].why == "topic orders: no such topic"


def test_rejected_records_are_those_of_a_day_and_expired_commits_make_them_a_lower_bound(landed: Landed) -> None:
    at = newest(landed)
    (row,) = look(landed, Topics({}), now=at + 86_390)
    assert (row.rejected_24h, row.last_commit_seconds) == (3, pytest.approx(86_390))
    (row,) = look(landed, Topics({}), now=at + 90_000)
    assert (row.rejected_24h, row.is_all_rejected) == (0, True)
    first = [s.snapshot_id for s in landed.table.metadata.snapshots[:2]]
    landed.table.maintenance.expire_snapshots().by_ids(first).commit()
    (row,) = look(landed, Topics({}))
    assert (row.rejected_24h, row.is_all_rejected) == (1, False)


def test_a_pipeline_without_a_table_waits_for_its_schema_or_for_its_first_run(landed: Landed) -> None:
    clicks = Pipeline(topic=Topic("clicks", value="avro"), table=Table("shop.clicks"))
    registry = FakeRegistry()
    there = Topics({"clicks": ends(3)})
    row = look(landed, there, clicks, registry=registry)[1]
    assert (row.text, row.why) == ("waiting", "no schema in clicks-value")
    missing = look(landed, Topics({}), clicks, registry=registry)[1]
    assert (missing.text, missing.why) == ("waiting", "topic clicks: no such topic")  # no schema is to blame
    registry.register("clicks-value", json.dumps(ORDER))
    assert look(landed, there, clicks, registry=registry)[1].text == "no table yet"
    registry.down = True
    assert "it is down" in look(landed, there, clicks, registry=registry)[1].why


def test_a_pipeline_that_cannot_be_read_is_a_row_and_not_the_end(landed: Landed, tmp_path: Path) -> None:
    other = replace(landed.pipeline, name="broken", table=Table("shop.broken"))
    broken = landed.catalog.create_table("shop.broken", landed.table.schema())
    Path(broken.metadata_location.removeprefix("file://")).write_text("{")
    topics = Topics({"orders": ends(200, 60)})
    rows = look(landed, topics, other)
    assert [row.state for row in rows] == [State.CAUGHT_UP, State.UNKNOWN]
    assert rows[1].why
    assert topics.asked == 1


def test_a_catalog_that_hangs_is_a_reason_and_its_threads_are_not_made_again(
    landed: Landed, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering = threading.Event()

    class Hanging:
        def table(self, identifier: str) -> None:
            answering.wait(30)

    monkeypatch.setattr(module, "LONGEST_SECONDS", 0.2)
    services = Services(lake=Hanging(), kafka=None, registry=lambda: None, stopped="no")  # type: ignore[arg-type]
    threads = DaemonThreads(2, name="hanging")
    for _ in range(2):
        rows = all_pipelines([landed.pipeline] * 5, services, threads, now=lambda: 0)
        assert {row.why for row in rows} == {"no answer within 0.2 s"}
    answering.set()
    assert sum(thread.name.startswith("hanging") for thread in threading.enumerate()) == 2


def test_totals_are_sums_of_what_is_known(landed: Landed) -> None:
    gone = Pipeline(topic=Topic("gone", value="text"), table=Table("shop.gone"))
    rows = look(landed, Topics({"orders": ends(210, 60)}), gone)
    sums = totals(rows)
    assert (sums["lag"], sums["rejected_24h"], sums["rows"], sums["data_files"]) == (10, 3, 257, 4)
    assert states(rows) == {"behind": 1, "waiting": 1}
    assert json.loads(json.dumps(rows[0].document()))["lag"] == 10


def test_totals_count_the_lag_of_a_topic_once_and_the_dead_letters_of_each_pipeline(landed: Landed) -> None:
    (row,) = look(landed, Topics({"orders": ends(210, 60)}))
    sums = totals([row, replace(row, pipeline="changes", rejected_24h=2)])
    assert (sums["lag"], sums["rejected_24h"], sums["rows"]) == (10, 5, 514)


def test_a_declaration_that_a_run_would_refuse_is_a_stop(landed: Landed) -> None:
    landed.pipeline = replace(landed.pipeline, write=Upsert(key=("order_id",)))
    (row,) = look(landed, Topics({"orders": ends(200, 60)}))
    assert row.state is State.STOPPED
    assert row.why.startswith(
        "the declaration differs from the table: write: the table was made for write mode append,"
    )
    assert row.differences == ()  # the reason says it
