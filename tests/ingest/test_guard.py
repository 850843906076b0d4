"""What a pipeline does after an error: by the kind of error, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from frazil.declaration import Pipeline, Table, Topic, each_topic
from frazil.errors import (
    CatalogUnavailable,
    Fault,
    Fenced,
    FrazilError,
    InvalidInput,
    JvmEnded,
    KafkaUnavailable,
    OffsetsLost,
    SparkFailed,
    TableReplaced,
)
from frazil.errors.causes import MOST_CHARACTERS
from frazil.ingest import runner
from frazil.ingest.guard import FAILURE_SECONDS, as_known, persist, report_error
from frazil.ingest.reporting.events import Event
from frazil.job.shared_reads import SharedReads

PIPELINE = Pipeline(topic=Topic("orders", value="text"), table=Table("shop.orders"))
LOST = OffsetsLost.of("orders", "orders", partition=0, first=0, earliest=1)


class Jvm:
    """A session whose JVM answers, or not."""

    def __init__(self, *, answers: bool = True) -> None:
        system = SimpleNamespace(nanoTime=lambda: 1)
        self._jvm = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system))) if answers else None


class Polled:
    """An ingestion whose polls end as listed; then the run is stopped."""

    def __init__(self, *polls: BaseException | None, jvm: Jvm | None = None) -> None:
        self.pipeline, self._polls = PIPELINE, iter(polls)
        self.events: list[tuple[str, float | None]] = []
        self.forgotten, self.is_stopped = 0, False
        self.job: Any = SimpleNamespace(
            reads=SharedReads(),
            stopping=lambda: self.is_stopped,
            clock=lambda: 0.0,
            wait=lambda seconds: None,
            redact=lambda text: text.replace("hunter2", "***"),
            run="me",
            spark=jvm or Jvm(),
            iceberg=SimpleNamespace(exists=lambda table: False),
        )

    def poll(self) -> None:
        try:
            error = next(self._polls)
        except StopIteration:
            self.is_stopped = True
            return
        if error is not None:
            raise error

    def forget(self) -> None:
        self.forgotten += 1

    def report(self, event: Event, **facts: Any) -> None:
        self.events.append((event.value, facts.get("retry_in_seconds")))


def persisted(polled: Polled) -> Polled:
    persist(polled, 1.0)  # type: ignore[arg-type]
    return polled


def errors(error: BaseException, number: int) -> Iterator[BaseException]:
    return iter([error] * number)


@pytest.mark.parametrize(
    "error",
    [
        SparkFailed("a worker died"),
        TableReplaced("another uuid"),
        Fenced("by its own late commit", winner="me"),
        Fenced("no tag"),
        ValueError("a defect"),
        FrazilError("no class of its own"),
    ],
    ids=repr,
)
def test_other_errors_in_a_row_end_the_pipeline_after_some_pauses(error: BaseException) -> None:
    polled = Polled(*errors(error, 100))
    with pytest.raises(FrazilError):
        persist(polled, 1.0)  # type: ignore[arg-type]
    assert polled.events == [("pipeline_retried", pause) for pause in FAILURE_SECONDS]
    assert polled.forgotten == len(FAILURE_SECONDS)


def test_a_poll_that_succeeds_makes_the_count_begin_again() -> None:
    error = SparkFailed("a worker died")
    polled = persisted(Polled(error, None, error, None, *errors(error, len(FAILURE_SECONDS))))
    assert [pause for _, pause in polled.events] == [FAILURE_SECONDS[0], FAILURE_SECONDS[0], *FAILURE_SECONDS]


@pytest.mark.parametrize("error", [InvalidInput("a typo"), Fenced("by another driver", winner="other")], ids=repr)
def test_what_a_new_attempt_cannot_change_ends_the_pipeline_at_once(error: FrazilError) -> None:
    polled = Polled(error)
    with pytest.raises(type(error)):
        persist(polled, 1.0)  # type: ignore[arg-type]
    assert polled.events == []


@pytest.mark.parametrize(
    ("error", "event", "last"),
    [(KafkaUnavailable("away"), "service_unavailable", 60.0), (LOST, "decision_required", 600.0)],
)
def test_outages_and_decisions_are_waited_for_without_end(error: FrazilError, event: str, last: float) -> None:
    polled = persisted(Polled(*errors(error, 50)))
    assert {name for name, _ in polled.events} == {event}
    assert len(polled.events) == 50
    assert polled.events[-1][1] == last


def test_a_lost_jvm_is_named_whatever_error_it_caused() -> None:
    polled = Polled(ConnectionRefusedError(111, "Connection refused"), jvm=Jvm(answers=False))
    with pytest.raises(JvmEnded, match="JVM ended"):
        persist(polled, 1.0)  # type: ignore[arg-type]
    assert polled.events == []


def test_a_jvm_that_goes_with_its_run_is_no_error() -> None:
    polled = Polled(ConnectionRefusedError(111, "Connection refused"), jvm=Jvm(answers=False))

    def stopped(seconds: float) -> None:
        polled.is_stopped = True  # the signal came in the meantime

    polled.job.wait = stopped
    assert persisted(polled).events == []


def test_an_unexpected_error_names_itself_and_its_place_and_no_secret() -> None:
    def fails() -> None:
        raise KeyError("x" * (MOST_CHARACTERS - 4) + "hunter2" + "y" * 1000)

    try:
        fails()
    except KeyError as error:
        known = as_known(error, PIPELINE, Polled().job)
    assert isinstance(known, Fault)
    assert "KeyError" in str(known)
    assert "test_guard.py:" in str(known)
    assert "hunter"[:3] not in str(known)


def event_of(error: FrazilError) -> Event:
    seen: list[Event] = []
    report_error(lambda event, **facts: seen.append(event), error)  # type: ignore[arg-type]
    return seen[0]


def test_each_kind_of_error_has_one_event() -> None:
    assert event_of(KafkaUnavailable("")) is Event.SERVICE_UNAVAILABLE
    assert event_of(LOST) is Event.DECISION_REQUIRED
    assert event_of(SparkFailed("")) is Event.PIPELINE_FAILED
    assert event_of(Fault("")) is Event.PIPELINE_FAILED


def test_a_run_that_follows_waits_for_its_catalog_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    tries, pauses, told = (
        iter([CatalogUnavailable("silent"), CatalogUnavailable("silent"), None]),
        list[float](),
        list[Any](),
    )

    def prove(*_: Any, **__: Any) -> None:
        if error := next(tries):
            raise error

    monkeypatch.setattr(runner, "check_catalog", prove)
    stopped = Polled()
    stopped.job.__dict__.update(wait=pauses.append, iceberg=None, new_id=str)
    assert runner._proven([PIPELINE], stopped.job, told.append)
    assert pauses == [1.0, 2.0]
    assert [(one["event"], one["pipeline"]) for one in told] == [("service_unavailable", "orders")] * 2
    told.clear()
    tries = iter([CatalogUnavailable("silent"), None])
    topics: Any = SimpleNamespace(patterns=[each_topic(r"(?P<of>.*)", table="shop.{of}", value="text")])
    assert runner._proven([], stopped.job, told.append, topics)
    assert [(one["event"], one["pipeline"]) for one in told] == [
        ("service_unavailable", "patterns[0]"),
        ("topics_matched", "patterns[0]"),
    ]
    stopped.is_stopped = True
    assert not runner._proven([PIPELINE], stopped.job, told.append)
