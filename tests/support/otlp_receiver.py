"""A receiver of OTLP over HTTP, which keeps what arrives."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class OtlpReceiver:
    """Receives on a free port of this machine while its block runs."""

    def __init__(self) -> None:
        self.metrics: list[ExportMetricsServiceRequest] = []
        self.traces: list[ExportTraceServiceRequest] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                body = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
                if self.path == "/v1/metrics":
                    receiver.metrics.append(ExportMetricsServiceRequest.FromString(body))
                else:
                    receiver.traces.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Return its address, as `OTEL_EXPORTER_OTLP_ENDPOINT` has it."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> OtlpReceiver:
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def values(self) -> dict[str, float]:
        """Return the newest value of each metric that came, by its name and the values of its labels."""
        found: dict[str, float] = {}
        for request in self.metrics:
            for metric in (m for r in request.resource_metrics for s in r.scope_metrics for m in s.metrics):
                for point in (*metric.sum.data_points, *metric.gauge.data_points):
                    labels = [a.value.string_value for a in point.attributes]
                    found[" ".join((metric.name, *labels))] = point.as_double
        return found

    def spans(self) -> list[Any]:
        """Return the spans that came."""
        return [s for t in self.traces for r in t.resource_spans for scope in r.scope_spans for s in scope.spans]
