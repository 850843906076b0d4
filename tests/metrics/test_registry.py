"""The names of metrics are a contract: a change here breaks the dashboards and alarms of users."""

from __future__ import annotations

from frazil.ingest.reporting.events import Event
from frazil.metrics.emf import UNITS
from frazil.metrics.metric_registry import COUNTED, METRICS, OF_PIPELINE, Kind
from frazil.metrics.readings import State
from tests.support import metrics_page

FROZEN = {
    "frazil_records_read_total": (),
    "frazil_records_landed_total": (),
    "frazil_records_rejected_total": ("reason",),
    "frazil_records_skipped_total": ("reason",),
    "frazil_records_filtered_total": ("reason",),
    "frazil_records_late_total": (),
    "frazil_records_masked_total": (),
    "frazil_read_bytes_total": (),
    "frazil_commits_total": (),
    "frazil_batch_seconds_total": ("step",),
    "frazil_events_total": ("event",),
    "frazil_lag_offsets": (),
    "frazil_freshness_seconds": (),
    "frazil_last_look_timestamp_seconds": (),
    "frazil_last_rejected_timestamp_seconds": ("reason",),
    "frazil_last_event_timestamp_seconds": ("event",),
    "frazil_retention_used_ratio": (),
    "frazil_pipeline_state": ("state",),
    "frazil_table_rows": (),
    "frazil_table_bytes": (),
    "frazil_table_files": ("content",),
    "frazil_run_info": ("run", "version"),
    "frazil_cpu_seconds_total": (),
}
IN_CLOUDWATCH = {
    "read": "Count",
    "written": "Count",
    "bytes": "Bytes",
    "duration_seconds": "Seconds",
    "stage_seconds": "Seconds",
    "freshness_seconds": "Seconds",
    "lag": "Count",
    "retention_used": "None",
}


def test_names_and_labels_are_those_that_users_depend_on() -> None:
    assert {metric.name: metric.labels for metric in METRICS} == FROZEN
    assert OF_PIPELINE == ("pipeline", "topic", "group")
    assert [str(state) for state in State] == [
        *("running", "waiting", "retrying", "suspended", "failed", "standby", "finished"),
    ]


def test_names_and_units_in_cloudwatch_are_those_that_users_depend_on() -> None:
    assert UNITS == IN_CLOUDWATCH
    by_reason = {metric.emf for metric in METRICS if metric.emf and metric.labels == ("reason",)}
    assert by_reason == {"rejected", "skipped", "filtered"}
    assert (
        *("fenced", "decision_required", "pipeline_failed", "pipeline_retried", "service_unavailable", "batch_retried"),
        *("schema_incompatible", "many_files"),
    ) == COUNTED


def test_what_is_counted_by_name_is_an_event() -> None:
    assert {Event(name) for name in COUNTED}


def test_labels_have_few_values_and_a_counter_ends_in_total() -> None:
    """A partition, an offset or a key would make a series of each."""
    bounded = {"reason", "step", "event", "state", "content", "run", "version"}
    for metric in METRICS:
        assert set(metric.labels) <= bounded
        assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER)
        assert metric.meaning.endswith(".")


def test_the_page_is_that_of_the_registry() -> None:
    assert metrics_page.PAGE.read_text() == metrics_page.page(), "run python -m tests.support.metrics_page"
