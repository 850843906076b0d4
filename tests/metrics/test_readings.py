"""The values of metrics follow the events of pipelines."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.metrics.readings import LOOK_SECONDS, Readings

LANDED: dict[str, Any] = {
    "read": 10, "written": 7, "rejected": {"undecodable": 2}, "skipped": {"tombstone": 1}, "late_events": 3, "bytes": 99,
    "duration_seconds": 3.0, "stage_seconds": 2.0, "commit_seconds": 0.5, "freshness_seconds": 5.0, "lag": 4,
    "retention_used": 0.25, "table_rows": 7, "table_bytes": 800, "table_data_files": 2, "table_delete_files": 0,
}  # fmt: skip
ORDERS = ("orders", "Orders", "")


class Run:
    """A driver whose clock is at `now`."""

    def __init__(self, name: str = "r1") -> None:
        self.now = 1_000.0
        self.readings = Readings(name, "1.0", clock=lambda: self.now, cpu_seconds=lambda: 12.5)

    def event(self, name: str, pipeline: str = "orders", **facts: Any) -> None:
        """Something happens now."""
        topic = pipeline.title()
        self.readings({"time": self.now, "event": name, "pipeline": pipeline, "topic": topic, "run": "r1", **facts})

    def values(self, pipeline: str = "orders") -> dict[Any, float]:
        """Return the values of a pipeline, by name and further labels."""
        found: dict[Any, float] = {}
        for sample in self.readings.samples():
            if sample.labels[:1] == (pipeline,):
                assert sample.labels[:3] == (pipeline, pipeline.title(), "")
                found[" ".join((sample.metric.name.removeprefix("frazil_"), *sample.labels[3:]))] = sample.value
        return found

    def value(self, name: str, pipeline: str = "orders") -> float | None:
        """Return one value; None if it does not exist."""
        return self.values(pipeline).get(name)

    @property
    def state(self) -> str:
        """Return the state of the pipeline."""
        (found,) = [name.split()[1] for name in self.values() if name.startswith("pipeline_state")]
        return found


def test_a_batch_is_counted() -> None:
    run = Run()
    run.event("pipeline_started")
    run.event("batch_committed", **LANDED)
    run.event("batch_committed", **{**LANDED, "rejected": {"undecodable": 1, "too_short": 1}, "masked": 7})
    assert run.values() == {
        "pipeline_state running": 1.0,
        "records_read_total": 20,
        "records_landed_total": 14,
        "records_rejected_total undecodable": 3,
        "records_rejected_total too_short": 1,
        "records_skipped_total tombstone": 2,
        "records_late_total": 6,
        "records_masked_total": 7,
        "read_bytes_total": 198,
        "commits_total": 2,
        "batch_seconds_total all": 6.0,
        "batch_seconds_total stage": 4.0,
        "batch_seconds_total commit": 1.0,
        "lag_offsets": 4,
        "freshness_seconds": 5.0,
        "last_look_timestamp_seconds": 1_000.0,
        "last_rejected_timestamp_seconds undecodable": 1_000.0,
        "last_rejected_timestamp_seconds too_short": 1_000.0,
        "retention_used_ratio": 0.25,
        "table_rows": 7,
        "table_bytes": 800,
        "table_files data": 2,
        "table_files deletes": 0,
    }


def test_rows_become_old_while_records_wait() -> None:
    run = Run()
    run.event("batch_committed", **LANDED)
    run.now += 60
    assert run.value("freshness_seconds") == 65.0


def test_the_lag_and_the_freshness_of_an_idle_topic_are_0() -> None:
    run = Run()
    run.event("batch_committed", **{**LANDED, "lag": 0, "freshness_seconds": 3_600.0})
    assert (run.value("lag_offsets"), run.value("freshness_seconds")) == (0.0, 0.0)
    for _ in range(60):
        run.now += 60
        run.event("idle", lag=0, freshness_seconds=0.0)
        assert (run.value("lag_offsets"), run.value("freshness_seconds")) == (0.0, 0.0)
        run.now += 59
        assert run.value("freshness_seconds") == 0.0


def test_rows_become_old_when_a_topic_cannot_be_looked_at() -> None:
    run = Run()
    run.event("idle", lag=0, freshness_seconds=0.0)
    run.now += LOOK_SECONDS + 1
    run.event("service_unavailable", retry_in_seconds=60)
    assert run.value("freshness_seconds") == LOOK_SECONDS + 1


def test_the_freshness_of_a_topic_that_landed_no_record_is_not_known() -> None:
    run = Run()
    run.event("batch_committed", **{**LANDED, "freshness_seconds": None})
    assert run.value("freshness_seconds") is None


@pytest.mark.parametrize(
    ("events", "state"),
    [
        (["pipeline_started"], "running"),
        (["pipeline_started", "service_unavailable"], "retrying"),
        (["service_unavailable", "pipeline_started"], "retrying"),
        (["service_unavailable", "pipeline_started", "idle"], "running"),
        (["decision_required", "pipeline_started", "decision_required", "pipeline_started"], "suspended"),
        (["decision_required", "pipeline_started", "batch_committed"], "running"),
        (["pipeline_failed"], "failed"),
        (["pipeline_retried"], "retrying"),
        (["fenced", "pipeline_finished"], "standby"),
        (["batch_committed", "pipeline_finished"], "finished"),
    ],
)
def test_the_state_follows_the_events(events: list[str], state: str) -> None:
    run = Run()
    for name in events:
        run.event(name, **(LANDED if name == "batch_committed" else {}))
    assert run.state == state


def test_a_first_batch_that_does_not_end_is_seen() -> None:
    run = Run()
    run.event("pipeline_started")
    run.now += 900
    assert run.value("last_look_timestamp_seconds") == 1_000.0


def test_a_pipeline_without_a_schema_waits() -> None:
    run = Run()
    run.event("pipeline_started")
    run.event("idle", message="no schema of orders-value", lag=5, freshness_seconds=3_600.0)
    run.now += 10
    assert (run.state, run.value("lag_offsets"), run.value("freshness_seconds")) == ("waiting", 5, 3_610.0)


def test_a_pipeline_without_a_topic_waits() -> None:
    run = Run()
    run.event("service_unavailable", error="TopicMissing", retry_in_seconds=60)
    assert run.state == "waiting"


def test_a_pipeline_that_waits_for_its_topic_is_looked_for_at_each_attempt() -> None:
    run = Run()
    for _ in range(30):
        run.event("pipeline_started")
        assert (run.state, run.value("last_look_timestamp_seconds")) == ("running", run.now)
        run.event("service_unavailable", error="TopicMissing", retry_in_seconds=60)
        assert run.state == "waiting"
        run.now += 60


def test_the_rows_of_a_topic_that_is_gone_become_old() -> None:
    run = Run()
    run.event("batch_committed", **{**LANDED, "lag": 0})
    for _ in range(10):
        run.now += 60
        run.event("pipeline_started")
        run.event("service_unavailable", error="TopicMissing", retry_in_seconds=60)
    assert run.value("freshness_seconds") == 600


def test_a_look_that_lands_nothing_has_its_lag_and_retention() -> None:
    run = Run()
    run.event("batch_committed", **LANDED)
    run.now += 600
    run.event("idle", lag=3, freshness_seconds=2.0, retention_used=0.5)
    found = [run.value(name) for name in ("lag_offsets", "freshness_seconds", "retention_used_ratio")]
    assert (found, run.state) == ([3, 2.0, 0.5], "running")


def test_a_driver_that_was_fenced_says_nothing_of_the_table() -> None:
    """Else the alarm of a lag would be raised by the driver that stands by."""
    run = Run()
    run.event("batch_committed", **LANDED)
    run.event("fenced")
    gauges = ("lag", "freshness", "last_look", "last_rejected", "retention", "table")
    assert not [name for name in run.values() if name.startswith(gauges)]
    assert run.values()["records_read_total"] == 10
    assert run.values()["events_total fenced"] == 1
    assert run.values()["last_event_timestamp_seconds fenced"] == 1_000.0


def test_a_pipeline_that_is_done_stays_fresh_while_others_of_its_drain_go_on() -> None:
    run = Run()
    run.event("batch_committed", **{**LANDED, "lag": 0})
    run.event("pipeline_finished")
    run.now += 3_600
    run.event("batch_committed", "payments", **LANDED)
    assert (run.state, run.value("freshness_seconds")) == ("finished", 0.0)


def test_pipelines_are_apart_and_the_run_is_named() -> None:
    run = Run()
    run.event("batch_committed", **LANDED)
    run.event("batch_committed", "payments", **{**LANDED, "read": 1})
    run.readings({"time": run.now, "event": "job_started", "run": "r1", "versions": {}})
    assert (run.value("records_read_total"), run.value("records_read_total", "payments")) == (10, 1)
    of_process = {s.metric.name: (s.labels, s.value) for s in run.readings.samples() if s.metric.is_of_process}
    assert of_process == {"frazil_run_info": (("r1", "1.0"), 1.0), "frazil_cpu_seconds_total": ((), 12.5)}
