"""The metrics and traces for OpenTelemetry, by OTLP over HTTP.

The endpoint, headers and certificates come from the SDK's own variables:
https://opentelemetry.io/docs/specs/otel/protocol/exporter/
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from frazil.metrics.metric_registry import COUNTED, METRICS, Kind, Metric, Unit
from frazil.metrics.readings import Readings

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.trace import Tracer

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""The variable whose endpoint turns the export on."""
_UNITS = {Unit.COUNT: "1", Unit.NONE: "1", Unit.BYTES: "By", Unit.SECONDS: "s"}
"""The units of OpenTelemetry, which are those of UCUM."""
SECONDS = 3
"""The longest time of one export. The end of a run waits for one of metrics and some of spans."""
SPANS = 512
"""The spans that wait for an export; more of them are dropped, while a receiver does not answer."""
_SECOND = 1_000_000_000


@contextmanager
def exported(
    readings: Readings, run: str, version: str, redact: Callable[[str], str], say: Callable[[str], None]
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Export the readings each minute and at the end of the block; yield a sink of events whose batches become spans.

    `redact` masks the secrets of a text. `say` is called once if the receiver does not take them.
    """
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = _resource(run, version)
    meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter(timeout=SECONDS))], resource=resource)
    meter = meters.get_meter("frazil", version)
    for metric in METRICS:
        _observe(meter, metric, readings)
    traces = TracerProvider(resource=resource)
    traces.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(timeout=SECONDS), max_queue_size=SPANS, max_export_batch_size=SPANS)
    )
    tracer = traces.get_tracer("frazil", version)
    with _problems_said(lambda text: say(redact(text))):
        try:
            yield lambda event: _span(tracer, event, redact)
        finally:
            meters.shutdown()
            traces.shutdown()


@contextmanager
def _problems_said(say: Callable[[str], None]) -> Iterator[None]:
    """Say the first problem that the SDK logs, and nothing of the others: a receiver that is gone would fill the log."""

    class Once(logging.Handler):
        is_said = False

        def emit(self, record: logging.LogRecord) -> None:
            if not self.is_said:
                self.is_said = True
                say(" ".join(record.getMessage().split()))

    logger, handler = logging.getLogger("opentelemetry"), Once(logging.WARNING)
    before, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = before


def _resource(run: str, version: str) -> Resource:
    """Return the attributes by which drivers differ; `OTEL_RESOURCE_ATTRIBUTES` adds to it."""
    from opentelemetry.sdk.resources import Resource

    return Resource.create({"service.name": "frazil", "service.version": version, "service.instance.id": run})


def _observe(meter: Any, metric: Metric, readings: Readings) -> None:
    from opentelemetry.metrics import Observation

    def values(_: CallbackOptions) -> Iterator[Observation]:
        for sample in readings.samples():
            if sample.metric is metric:
                yield Observation(sample.value, dict(zip(metric.all_labels, sample.labels, strict=True)))

    # A collector that serves Prometheus adds `_total` to a counter's name.
    named = metric.name.removesuffix("_total")
    create = meter.create_observable_counter if metric.kind is Kind.COUNTER else meter.create_observable_gauge
    create(named, [values], unit=_UNITS[metric.unit], description=metric.meaning)


def _span(tracer: Tracer, event: Mapping[str, Any], redact: Callable[[str], str]) -> None:
    """Make spans of an event: of a batch with its steps, or of an error."""
    from opentelemetry.trace import Status, StatusCode, set_span_in_context

    name, end = event["event"], round(event["time"] * _SECOND)
    if name != "batch_committed" and name not in COUNTED:
        return
    took = round((event.get("duration_seconds") or 0) * _SECOND)
    attributes = {f"frazil.{key}": _attribute(value, redact) for key, value in event.items() if value is not None}
    span = tracer.start_span("batch" if took else name, start_time=end - took, attributes=attributes)
    if name in COUNTED:
        span.set_status(Status(StatusCode.ERROR, redact(str(event.get("message", name)))))
    began = end - took
    for step in ("stage", "commit"):
        seconds = round((event.get(f"{step}_seconds") or 0) * _SECOND)
        if seconds:
            tracer.start_span(step, set_span_in_context(span), start_time=began).end(began + seconds)
            began += seconds
    span.end(end)


def _attribute(value: Any, redact: Callable[[str], str]) -> str | int | float | bool:
    if isinstance(value, int | float):
        return value
    return redact(value if isinstance(value, str) else json.dumps(value, default=str))
