"""The metrics of one driver at this moment, from the events of its pipelines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from frazil.metrics import metric_registry as registry
from frazil.metrics.metric_registry import COUNTED, METRICS, OF_PIPELINE, SAMPLES, Kind, Metric

LOOK_SECONDS = 120.0
"""A pipeline that reads nothing reports a look at its topic each minute; after two of them its freshness is not known."""


class State(StrEnum):
    """The state of a pipeline in this driver.

    `RUNNING`: it reads its topic. `WAITING`: its topic or schema does not exist yet. `RETRYING`: a service is unavailable, or an
    attempt failed. `SUSPENDED`: an operator must decide. `FAILED`: an error ended it. `STANDBY`: another driver lands its
    records. `FINISHED`: the run landed what it was to land.
    """

    RUNNING = "running"
    WAITING = "waiting"
    RETRYING = "retrying"
    SUSPENDED = "suspended"
    FAILED = "failed"
    STANDBY = "standby"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class Sample:
    """The value of a metric; `labels` are in the order of `Metric.all_labels`."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


_STATES = {
    "batch_committed": State.RUNNING,
    "topics_matched": State.RUNNING,
    "types_matched": State.RUNNING,
    "service_unavailable": State.RETRYING,
    "pipeline_retried": State.RETRYING,
    "decision_required": State.SUSPENDED,
    "pipeline_failed": State.FAILED,
    "fenced": State.STANDBY,
}
_ENDED = (State.SUSPENDED, State.FAILED, State.STANDBY, State.WAITING)
_OF_EVENTS = tuple(m for m in METRICS if m.fact and m.kind is Kind.COUNTER)
_OF_TABLE = {registry.ROWS: "table_rows", registry.TABLE_BYTES: "table_bytes"}
_CONTENTS = {"data": "table_data_files", "deletes": "table_delete_files"}
_KEPT = {
    metric.name: metric
    for metric in METRICS
    if not metric.is_of_process and metric not in (registry.LAG, registry.FRESHNESS, registry.STATE, registry.LAST_LOOK)
}
"""The metrics that go on from an earlier run by their values alone."""


@dataclass(slots=True)
class _Pipeline:
    """The values of one pipeline, by metric and further labels. `newest` and `looked_at` are seconds since 1970.

    `is_earlier`: only an earlier run had the pipeline until now. `looked_before` is the last look of that run.
    """

    state: State | None = State.RUNNING
    counters: dict[tuple[Metric, tuple[str, ...]], float] = field(default_factory=dict)
    gauges: dict[tuple[Metric, tuple[str, ...]], float] = field(default_factory=dict)
    lag: int | None = None
    newest: float | None = None
    looked_at: float | None = None
    looked_before: float | None = None
    is_earlier: bool = False

    def count(self, metric: Metric, value: float, *labels: str) -> None:
        self.counters[metric, labels] = self.counters.get((metric, labels), 0.0) + value

    def see(self, at: float, lag: int | None, freshness: float | None) -> None:
        """Note a look at the topic."""
        self.looked_at, self.lag = at, lag
        if lag and freshness is not None:
            self.newest = at - freshness

    def freshness(self, now: float) -> float | None:
        """Return the age of the newest landed record while records wait, or of the last look; None if neither is known."""
        if self.lag is None or self.looked_at is None:
            return None
        if self.lag and self.newest is not None:
            return max(now - self.newest, 0.0)
        unseen = 0.0 if self.state is State.FINISHED else now - self.looked_at
        return unseen if unseen > LOOK_SECONDS else None if self.lag else 0.0


class Readings:
    """Takes events, from any thread, and returns the values of the metrics.

    `clock` is seconds since 1970, as in the events; `cpu_seconds` is the CPU time of the driver so far, None if it is not known.
    """

    def __init__(
        self, run: str, version: str, *, clock: Callable[[], float], cpu_seconds: Callable[[], float | None]
    ) -> None:
        self._run, self._version, self._clock, self._cpu_seconds = run, version, clock, cpu_seconds
        self._pipelines: dict[tuple[str, ...], _Pipeline] = {}
        self._lock = threading.Lock()

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Take one event."""
        if "pipeline" not in event:
            return
        labels = tuple(str(event.get(name, "")) for name in OF_PIPELINE)
        with self._lock:
            _take(self._pipelines.setdefault(labels, _Pipeline()), event)

    def continue_from(self, samples: Iterator[tuple[str, Mapping[str, str], float]]) -> None:
        """Add the counters of an earlier run, and its state and gauges until the first event: names, labels and values."""
        with self._lock:
            for name, labels, value in samples:
                if "pipeline" in labels:
                    of = tuple(labels.get(one, "") for one in OF_PIPELINE)
                    _keep(self._pipelines.setdefault(of, _Pipeline(None, is_earlier=True)), name, labels, value)

    def end(self) -> None:
        """Note that the run ended as it was to: a pipeline without an event is not of this run, and has counters only."""
        with self._lock:
            if all(one.is_earlier for one in self._pipelines.values()):
                return  # it was stopped before it began
            for one in self._pipelines.values():
                if one.is_earlier:
                    one.state, one.looked_before = None, None
                    one.gauges.clear()

    def samples(self) -> list[Sample]:
        """Return the values of all metrics now."""
        now, cpu_seconds = self._clock(), self._cpu_seconds()
        found = [Sample(registry.RUN, (self._run, self._version), 1.0)]
        if cpu_seconds is not None:
            found.append(Sample(registry.CPU, (), cpu_seconds))
        with self._lock:
            for labels, one in self._pipelines.items():
                found += (Sample(metric, (*labels, *further), value) for (metric, further), value in _values(one, now))
        return found


def _keep(one: _Pipeline, name: str, labels: Mapping[str, str], value: float) -> None:
    """Keep a value of an earlier run."""
    if name == registry.STATE.name and labels.get("state") in tuple(State):
        one.state = State(labels["state"])
    if name == registry.LAST_LOOK.name:
        one.looked_before = value
    if metric := _KEPT.get(name):
        of = metric, tuple(labels.get(label, "") for label in metric.labels)
        values = one.counters if metric.kind is Kind.COUNTER else one.gauges
        values[of] = value


def _take(one: _Pipeline, event: Mapping[str, Any]) -> None:
    name, at = str(event["event"]), float(event["time"])
    waited = one.state is State.WAITING
    if name in COUNTED:
        one.count(registry.EVENTS, 1.0, name)
        one.gauges[registry.LAST_EVENT, (name,)] = at
    one.state = _state(None if one.is_earlier else one.state, event) or one.state
    one.is_earlier = False
    if one.state is State.STANDBY:  # another driver has these values now
        one.lag = one.newest = one.looked_at = one.looked_before = None
        one.gauges = {of: value for of, value in one.gauges.items() if of[0] is registry.LAST_EVENT}
    if name == "pipeline_started" and (one.looked_at is None or (waited and one.lag != 0)):
        one.looked_at = (
            at  # a first batch that does not end has no other time; one that was read to its end may be gone
        )
    if name == "idle":
        one.see(at, event.get("lag", one.lag), event.get("freshness_seconds"))
        one.gauges[registry.RETENTION, ()] = event.get("retention_used") or 0.0
    if name != "batch_committed":
        return
    one.see(at, event["lag"], event.get("freshness_seconds"))
    one.count(registry.COMMITS, 1.0)
    for metric in _OF_EVENTS:
        value = event.get(metric.fact) or 0
        for reason, number in value.items() if isinstance(value, Mapping) else ():
            one.count(metric, number, reason)
        if not metric.labels:
            one.count(metric, float(value))
    one.gauges |= {(registry.LAST_REJECTED, (reason,)): at for reason in event.get("rejected") or ()}
    for fact, step in SAMPLES.items():
        one.count(registry.BATCH_SECONDS, event.get(fact) or 0.0, step)
    one.gauges[registry.RETENTION, ()] = event.get("retention_used") or 0.0
    one.gauges |= {(metric, ()): event[fact] for metric, fact in _OF_TABLE.items() if fact in event}
    one.gauges |= {(registry.FILES, (kind,)): event[fact] for kind, fact in _CONTENTS.items() if fact in event}


def _state(before: State | None, event: Mapping[str, Any]) -> State | None:
    name = event["event"]
    if name == "idle":
        return State.WAITING if event.get("message") else State.RUNNING
    if name == "pipeline_started":  # a new attempt after an error, until it has read
        return before if before not in (None, State.WAITING, State.FINISHED) else State.RUNNING
    if name == "pipeline_finished":
        return before if before in _ENDED else State.FINISHED
    if event.get("error") == "TopicMissing":
        return State.WAITING
    if name == "pipeline_failed" and "retry_in_seconds" in event:
        return State.RETRYING
    return _STATES.get(name, before)


def _values(one: _Pipeline, now: float) -> Iterator[tuple[tuple[Metric, tuple[str, ...]], float]]:
    if one.state is not None:
        yield (registry.STATE, (one.state.value,)), 1.0
    yield from one.counters.items()
    yield from one.gauges.items()
    known = {
        registry.LAG: one.lag,
        registry.FRESHNESS: one.freshness(now),
        registry.LAST_LOOK: one.looked_before if one.looked_at is None else one.looked_at,
    }
    yield from (((metric, ()), float(value)) for metric, value in known.items() if value is not None)
