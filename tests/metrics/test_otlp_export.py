"""Metrics and traces, as a receiver of OpenTelemetry gets them."""

from __future__ import annotations

import pytest

from frazil.metrics.metric_registry import METRICS
from frazil.metrics.otlp_export import exported
from tests.metrics.test_readings import LANDED, Run
from tests.support.otlp_receiver import OtlpReceiver


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> OtlpReceiver:
    with OtlpReceiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        run, said = Run(), list[str]()
        with exported(run.readings, "r1", "1.0", redact, said.append) as trace:
            for name, facts in (
                ("batch_committed", {**LANDED, "masked": 1, "filtered": {"where": 1}, "offsets": "0:10-20"}),
                ("pipeline_failed", {"message": "the secret was refused"}),
                ("idle", {"lag": 0}),
            ):
                run.event(name, **facts)
                trace({"time": run.now, "event": name, "pipeline": "orders", "topic": "Orders", "run": "r1", **facts})
    assert said == []
    return receiver


def redact(text: str) -> str:
    return text.replace("secret", "[redacted]")


def test_all_metrics_arrive_with_their_run(receiver: OtlpReceiver) -> None:
    values = receiver.values()
    assert {name.split()[0] for name in values} == {metric.name.removesuffix("_total") for metric in METRICS}
    assert values["frazil_records_rejected orders Orders  undecodable"] == 2.0
    (resource,) = {str(r.resource) for request in receiver.metrics for r in request.resource_metrics}
    assert all(part in resource for part in ("service.instance.id", '"r1"', '"frazil"'))


def test_a_batch_is_a_span_with_its_steps_and_offsets(receiver: OtlpReceiver) -> None:
    spans = {span.name: span for span in receiver.spans()}
    assert set(spans) == {"batch", "stage", "commit", "pipeline_failed"}
    batch, stage, commit = spans["batch"], spans["stage"], spans["commit"]
    assert (batch.start_time_unix_nano, batch.end_time_unix_nano) == (997_000_000_000, 1_000_000_000_000)
    assert (stage.start_time_unix_nano, stage.end_time_unix_nano) == (997_000_000_000, 999_000_000_000)
    assert (commit.start_time_unix_nano, commit.end_time_unix_nano) == (999_000_000_000, 999_500_000_000)
    assert stage.parent_span_id == commit.parent_span_id == batch.span_id
    attributes = {one.key: one.value for one in batch.attributes}
    assert attributes["frazil.offsets"].string_value == "0:10-20"
    assert attributes["frazil.read"].int_value == 10


def test_an_error_is_a_span_without_secrets(receiver: OtlpReceiver) -> None:
    (span,) = [span for span in receiver.spans() if span.name == "pipeline_failed"]
    assert (span.status.code, span.status.message) == (2, "the [redacted] was refused")
    assert "secret" not in str(receiver.traces)


def test_a_receiver_that_is_gone_is_said_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with OtlpReceiver() as gone:
        url = gone.url
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"{url}/secret")
    run, said = Run(), list[str]()
    with exported(run.readings, "r1", "1.0", redact, said.append) as trace:
        run.event("batch_committed", **LANDED)
        trace({"time": run.now, "event": "batch_committed", "pipeline": "orders", **LANDED})
    (text,) = said
    assert "[redacted]/v1/" in text
    assert "secret" not in text
    assert capfd.readouterr().err == ""
