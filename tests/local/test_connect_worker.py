"""The settings of connectors, and what their creation reports. `test_change_data_parts.py` creates real ones."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from frazil.errors import LocalPartFailed
from frazil.local.connect_worker import connector_settings, create_connector
from tests.support.guides import block


def test_the_settings_in_the_guide_are_these() -> None:
    assert json.loads(block("database-tables.md", "connector.json")) == connector_settings(
        "postgresql://frazil@127.0.0.1:5432/frazil",
        prefix="shop",
        tables=("public.orders", "public.items"),
        registry_url="http://127.0.0.1:8081/apis/ccompat/v7",
    )


Answer = tuple[int, Any]
Worker = Callable[..., tuple[str, list[tuple[str, str, Any]]]]


@pytest.fixture
def worker() -> Iterator[Worker]:
    """A worker that gives each answer once, and the last one from then on; the requests that it got."""
    servers = []

    def make(*answers: Answer) -> tuple[str, list[tuple[str, str, Any]]]:
        requests: list[tuple[str, str, Any]] = []

        class Handler(BaseHTTPRequestHandler):
            def handle_one(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                requests.append((self.command, self.path, json.loads(body) if body else None))
                code, document = answers[min(len(requests), len(answers)) - 1]
                content = b"" if document is None else json.dumps(document).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PUT = handle_one  # noqa: N815

            def log_message(self, *arguments: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}", requests

    yield make
    for server in servers:
        server.shutdown()
        server.server_close()


def status(*tasks: str, connector: str = "RUNNING") -> Answer:
    listed = [{"state": state, "trace": "java.lang.Error: it broke\n" if state == "FAILED" else ""} for state in tasks]
    return 200, {"connector": {"state": connector}, "tasks": listed}


def test_a_connector_is_created_once_its_task_runs(worker: Worker) -> None:
    url, requests = worker((201, {}), (404, {}), status(), status("UNASSIGNED"), status("RUNNING"))
    create_connector(url, "shop", {"topic.prefix": "shop"})
    assert requests[0] == ("PUT", "/connectors/shop/config", {"topic.prefix": "shop"})
    assert [request[1] for request in requests[1:]] == ["/connectors/shop/status"] * 4


def test_a_failed_task_is_reported_with_its_trace(worker: Worker) -> None:
    url, _ = worker((201, {}), status("FAILED"))
    with pytest.raises(LocalPartFailed, match="connector shop failed: java.lang.Error: it broke"):
        create_connector(url, "shop", {})


def test_refused_settings_are_reported_with_the_workers_message(worker: Worker) -> None:
    url, _ = worker((400, {"message": "topic.prefix is missing"}))
    with pytest.raises(LocalPartFailed, match="refused PUT /connectors/shop/config: .*topic.prefix is missing"):
        create_connector(url, "shop", {})


def test_a_task_that_does_not_start_is_an_error(worker: Worker) -> None:
    url, _ = worker((201, {}), status())
    with pytest.raises(LocalPartFailed, match="connector shop did not start within 0.1 s"):
        create_connector(url, "shop", {}, seconds=0.1)
