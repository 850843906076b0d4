"""The settings of connectors, and what their creation reports. `test_change_data_parts.py` creates real ones."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from frazil.errors import LocalPartFailed
from frazil.local.connect_worker import connector_settings as settings_of_product
from frazil.local.connect_worker import create_connector
from tests.support.connectors import Converter, connector_settings, delete_connector
from tests.support.guides import block

DATABASE = "postgresql://frazil@127.0.0.1:5433/shop"


def settings(converter: Converter, **options: Any) -> dict[str, str]:
    return connector_settings(DATABASE, prefix="shop", tables=("public.a", "public.b"), converter=converter, **options)


def test_the_database_is_that_of_the_uri() -> None:
    found = settings(Converter.JSON)
    names = ("hostname", "port", "user", "password", "dbname")
    assert [found[f"database.{name}"] for name in names] == ["127.0.0.1", "5433", "frazil", "", "shop"]
    assert found["table.include.list"] == "public.a,public.b"


@pytest.mark.parametrize(("converter", "enabled"), [(Converter.JSON, "false"), (Converter.JSON_WITH_SCHEMA, "true")])
def test_json_is_written_with_or_without_schemas(converter: Converter, enabled: str) -> None:
    found = settings(converter)
    assert found["key.converter.schemas.enable"] == found["value.converter.schemas.enable"] == enabled
    assert found.get("decimal.handling.mode") == ("string" if converter is Converter.JSON else None)


def test_avro_is_written_with_the_ids_of_the_confluent_api() -> None:
    found = settings(Converter.AVRO, registry_url="http://127.0.0.1:8080/apis/ccompat/v7")
    for side in ("key", "value"):
        assert found[f"{side}.converter.apicurio.registry.url"] == "http://127.0.0.1:8080/apis/registry/v2"
        assert found[f"{side}.converter.apicurio.registry.use-id"] == "contentId"


def test_further_settings_override() -> None:
    found = settings(Converter.JSON, more={"snapshot.mode": "no_data", "skipped.operations": "t"})
    assert (found["snapshot.mode"], found["skipped.operations"]) == ("no_data", "t")


def test_the_settings_in_the_guide_are_these() -> None:
    assert json.loads(block("database-tables.md", "connector.json")) == settings_of_product(
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

            do_GET = do_PUT = do_DELETE = handle_one  # noqa: N815

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


def test_a_connector_is_deleted_by_its_name(worker: Worker) -> None:
    url, requests = worker((204, None))
    delete_connector(url, "shop")
    assert requests == [("DELETE", "/connectors/shop", None)]
