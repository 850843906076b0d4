"""The settings of connectors, and what their creation reports. `test_change_data_parts.py` creates real ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from frazil.errors import LocalPartFailed
from frazil.local.connect_worker import connector_settings, create_connector
from tests.support.guides import block
from tests.support.local_server import LocalServer, QuietHandler


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
    servers = ExitStack()

    def make(*answers: Answer) -> tuple[str, list[tuple[str, str, Any]]]:
        requests: list[tuple[str, str, Any]] = []

        class Handler(QuietHandler):
            def handle_one(self) -> None:
                body = self.body()
                requests.append((self.command, self.path, json.loads(body) if body else None))
                code, document = answers[min(len(requests), len(answers)) - 1]
                self.answer(code, b"" if document is None else json.dumps(document).encode())

            do_GET = do_PUT = handle_one  # noqa: N815

        return servers.enter_context(LocalServer(Handler)).address, requests

    with servers:
        yield make


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
