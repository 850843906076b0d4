"""The view of a run is made of the log's own events."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from frazil.cli.pipelines.run import Progress
from frazil.ingest.reporting.events import Event


def event(name: Event, time: float, **facts: Any) -> dict[str, Any]:
    return {"time": time, "event": name.value, "pipeline": "orders", "topic": "orders", "run": "r", **facts}


def landed(time: float, read: int, lag: int, **rejected: int) -> dict[str, Any]:
    return event(Event.BATCH_COMMITTED, time, read=read, rejected=rejected, skipped={}, lag=lag, freshness_seconds=2.0)


def shown(progress: Progress) -> list[str]:
    console = Console(width=200)
    with console.capture() as taken:
        console.print(progress)
    return taken.get().splitlines()[1].split()


def test_what_batches_land_is_summed() -> None:
    progress = Progress(("orders",), clock=lambda: 130.0)
    progress(event(Event.PIPELINE_STARTED, 100.0))
    progress(landed(110.0, 1_000, 500, undecodable=2, too_short=1))
    progress(landed(120.0, 500, 0))
    progress(event(Event.PIPELINE_FINISHED, 125.0))
    # 1,500 records in 25 s; nothing waits, so rows are as fresh as they can be
    assert shown(progress) == ["orders", "1,500", "60", "0", "0.0", "s", "3", "done"]


def test_a_refused_pipeline_names_its_error() -> None:
    progress = Progress(("orders",), clock=lambda: 101.0)
    progress(event(Event.PIPELINE_STARTED, 100.0))
    progress(event(Event.DECISION_REQUIRED, 100.5, error="TopicRecreated", message="another id"))
    assert shown(progress)[-1] == "TopicRecreated"


def test_a_pipeline_waits_until_it_is_heard_of() -> None:
    assert shown(Progress(("orders",))) == ["orders", "0", "–", "–", "–", "0", "waiting"]


def test_changes_of_the_schema_are_noted() -> None:
    progress = Progress(("orders",))
    progress(event(Event.SCHEMA_EVOLVED, 100.0, changes=["add note: string"]))
    assert progress.notes == ["orders: add note: string"]


def test_every_event_is_taken() -> None:
    progress = Progress(("orders",))
    facts: dict[str, Any] = {
        "read": 1, "rejected": {}, "skipped": {}, "lag": 0, "freshness_seconds": None, "message": "", "changes": (),
        "topics": 1, "topic": "a.*", "types": 2, "types_of": "shop.*",
    }  # fmt: skip
    for name in Event:
        progress(event(name, 1.0, **facts))


def test_while_it_runs_the_rate_is_of_the_last_seconds_and_the_time_left_is_told() -> None:
    now = [200.0]
    progress = Progress(("orders",), clock=lambda: now[0])
    progress(event(Event.PIPELINE_STARTED, 100.0))
    progress(landed(110.0, 90_000, 10_000))
    progress(landed(190.0, 3_000, 6_000))
    assert shown(progress) == ["orders", "93,000", "100", "6,000", "12", "s", "0", "running,", "60", "s", "left"]


def test_a_run_that_was_stopped_is_not_called_done() -> None:
    progress = Progress(("orders",), clock=lambda: 130.0)
    progress(event(Event.PIPELINE_STARTED, 100.0))
    progress(event(Event.PIPELINE_FINISHED, 125.0, stopped=True))
    assert shown(progress)[-1] == "stopped"


def test_what_is_waited_for_stays_on_the_screen() -> None:
    progress = Progress(("orders",), clock=lambda: 130.0)
    progress(event(Event.PIPELINE_STARTED, 100.0))
    progress(event(Event.IDLE, 101.0, lag=2000, message="waiting for a schema in subject orders-value"))
    progress(event(Event.PIPELINE_FINISHED, 102.0, stopped=False))
    assert " ".join(shown(progress)) == "orders 0 – 2,000 – 0 waiting for a schema in subject orders-value"
