"""The metrics of a run on this machine: where they go, and for how long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frazil.errors import InvalidInput
from frazil.ingest.reporting.events import Event

if TYPE_CHECKING:
    from frazil.ingest.reporting.events import Sink
    from frazil.job.context import JobContext
    from frazil.metrics.prometheus_export import Address
    from frazil.metrics.readings import Readings

Say = Callable[[Event, str], None]
WRITE_SECONDS = 15.0
"""The interval between two writes of the file while a run goes on; Prometheus scrapes as often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The outputs of metrics: an endpoint for Prometheus, a file for its node exporter, a receiver of OpenTelemetry."""

    endpoint: Address | None = None
    file: Path | None = None
    is_otlp: bool = False

    def __bool__(self) -> bool:
        """Return whether metrics go anywhere."""
        return bool(self.endpoint or self.file or self.is_otlp)


@contextmanager
def measured(sink: Sink, job: JobContext, outputs: Outputs, say: Say) -> Iterator[Sink]:
    """Yield a sink for a run whose metrics go to `outputs`; events go on to `sink`. `say` reports an event of the process."""
    if not outputs:
        yield sink
        return
    from frazil.metrics.prometheus_export import samples_of, served
    from frazil.metrics.readings import Readings

    readings = Readings(job.run, job.version, clock=job.clock, cpu_seconds=lambda: cpu_seconds(job))
    sinks: list[Callable[[Mapping[str, Any]], None]] = [sink, readings]
    with ExitStack() as stack:
        if outputs.endpoint is not None:
            say(Event.METRICS_SERVED, f"metrics: {stack.enter_context(served(readings, outputs.endpoint))}")
        if outputs.file is not None:
            readings.continue_from(samples_of(outputs.file))
            stack.enter_context(_written(readings, outputs.file, say))
        if outputs.is_otlp:
            from frazil.metrics.otlp_export import exported

            unsent = partial(say, Event.METRICS_UNSENT)
            sinks.append(stack.enter_context(exported(readings, job.run, job.version, job.redact, unsent)))

        def each(event: Mapping[str, Any]) -> None:
            for one in sinks:
                one(event)

        yield each
        readings.end()


@contextmanager
def _written(readings: Readings, path: Path, say: Say) -> Iterator[None]:
    """Write the file at once, each `WRITE_SECONDS`, and at the end of the block. Only the first write may end the run."""
    from frazil.metrics.prometheus_export import write_file

    ended = threading.Event()

    def write() -> None:
        while not ended.wait(WRITE_SECONDS):
            with suppress(InvalidInput):  # the last write says so
                write_file(readings, path)

    write_file(readings, path)
    writer = threading.Thread(target=write, name="metrics-file", daemon=True)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()
        try:
            write_file(readings, path)
        except InvalidInput as error:
            say(Event.METRICS_UNSENT, str(error))


def cpu_seconds(job: JobContext) -> float | None:
    """Return the CPU seconds of this process and of Spark's JVM so far; None if the JVM does not answer."""
    from py4j.protocol import Py4JError

    try:
        jvm: Any = job.spark.sparkContext._jvm
        used = jvm.java.lang.ProcessHandle.current().info().totalCpuDuration()
        return time.process_time() + (used.get().toMillis() / 1000 if used.isPresent() else 0.0)
    except (Py4JError, OSError, AttributeError, TypeError):  # as it does while the session ends
        return None
