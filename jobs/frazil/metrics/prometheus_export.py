"""The metrics for Prometheus: an endpoint of a run that follows, and a file of a run that ends."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from frazil.errors import InvalidInput
from frazil.metrics.metric_registry import CPU, METRICS, Kind, Metric
from frazil.metrics.readings import Readings

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port; port 0 is a free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Return the address that is written `HOST:PORT`. Raises `InvalidInput`."""
        host, _, port = text.rpartition(":")
        if not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
            raise InvalidInput(f"{text} is not HOST:PORT", where="--metrics", do="Give one, such as 127.0.0.1:9464")
        return cls(host.strip("[]"), int(port))

    def __str__(self) -> str:
        """Return the address of the metrics."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}/metrics"


@contextmanager
def served(readings: Readings, address: Address) -> Iterator[Address]:
    """Serve the metrics while the block runs; yield the address in use. Raises `InvalidInput` if it cannot be bound."""
    from prometheus_client import start_http_server

    try:
        server, thread = start_http_server(address.port, address.host, registry=_Collector(readings).registry)
    except OSError as error:
        what = f"{address.host}:{address.port} cannot be bound: {error.strerror or error}"
        raise InvalidInput(what, where="--metrics", do="Give a free port of this machine") from None
    try:
        yield Address(address.host, int(server.server_port))
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def write_file(readings: Readings, path: Path) -> None:
    """Write the metrics as a file of the node exporter's textfile collector, which reads it in one piece.

    It has no CPU time: the collector drops a metric without labels that two files have.
    """
    from prometheus_client import write_to_textfile

    try:
        write_to_textfile(str(path), _Collector(readings, without=(CPU,)).registry)
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be written: {error.strerror or error}", where="--metrics-file", do="Give another file"
        ) from None


def samples_of(path: Path) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Yield the names, labels and values of such a file; nothing if it does not exist. Raises `InvalidInput`."""
    from prometheus_client.parser import text_string_to_metric_families

    try:
        text = path.read_text() if path.exists() else ""
        for family in text_string_to_metric_families(text):
            yield from ((one.name, one.labels, one.value) for one in family.samples)
    except (OSError, ValueError) as error:
        what = f"{path} cannot be read as metrics: {error}"
        raise InvalidInput(what, where="--metrics-file", do="Delete it, or give another file") from None


class _Collector:
    """The readings as prometheus_client collects them."""

    def __init__(self, readings: Readings, without: Collection[Metric] = ()) -> None:
        from prometheus_client import CollectorRegistry

        self._readings, self._without = readings, without
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    def collect(self) -> Iterator[Family]:
        """Yield the metrics that have values, in the registry's order."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        samples = self._readings.samples()
        for metric in METRICS:
            kind = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
            family = kind(metric.name, metric.meaning, labels=metric.all_labels)
            for sample in samples:
                if sample.metric is metric:
                    family.add_metric(sample.labels, sample.value)
            if family.samples and metric not in self._without:
                yield family
