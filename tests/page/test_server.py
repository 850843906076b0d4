"""The server answers this machine alone, read only, and never with a secret."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from frazil.clients.secrets import Secrets
from frazil.page import server
from frazil.page.refreshing import PATIENCE_SECONDS, Known
from frazil.page.server import FILES, bound
from tests.audit.audited_table import Landed
from tests.page.page_facts import COMMAND, GivenFacts, facts_of, hostile_letter, many, served
from tests.support.chromium import browser


class Client:
    """Requests of a served page."""

    def __init__(self, address: str, facts: GivenFacts) -> None:
        self.address, self.facts = address, facts
        self.port = int(address.rstrip("/").rpartition(":")[2])

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, http.client.HTTPMessage, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, headers={"Host": f"127.0.0.1:{self.port}", **headers})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    facts = GivenFacts(many(500), letter=hostile_letter())
    with served(facts) as address:
        yield Client(address, facts)


def test_pages_are_served_with_a_strict_policy(client: Client) -> None:
    for path in ("/", "/?q=billing&state=stopped", "/pipelines/orders_17", "/pipelines/orders_17/dead-letters/0:7"):
        status, headers, text = client.ask(path)
        assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8"), text
        policy = headers["Content-Security-Policy"]
        for part in ("default-src 'none'", "style-src 'self'", "script-src 'self'", "img-src 'self'"):
            assert part in policy.split("; ")
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert "Server" not in headers
    assert COMMAND.format("orders_17") in client.ask("/pipelines/orders_17")[2]


@pytest.mark.parametrize("name", FILES)
def test_style_script_and_icon_are_own_files(client: Client, name: str) -> None:
    status, headers, text = client.ask(f"/static/{name}")
    assert status == 200
    assert headers["Content-Security-Policy"]
    assert text


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{}", "127.0.0.1", "localhost", "127.0.0.1:1", "", "[::1]:{}"]
)
def test_another_host_is_refused(client: Client, host: str) -> None:
    status, headers, text = client.ask("/", Host=host.format(client.port))
    assert status in (400, 421)
    assert "orders_17" not in text
    assert status == 400 or headers["Content-Security-Policy"]


def test_localhost_is_this_machine(client: Client) -> None:
    assert client.ask("/", Host=f"localhost:{client.port}")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(client: Client, method: str) -> None:
    status, headers, _ = client.ask("/", method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_head_has_no_body(client: Client) -> None:
    assert client.ask("/", "HEAD")[::2] == (200, "")


@pytest.mark.parametrize(
    "path",
    ["/nothing", "/pipelines/unknown", "/pipelines/..%2f..%2fetc", "/static/../server.py", "/static/page.html",
     "/pipelines/orders_17/dead-letters/0:x", "/pipelines/unknown/dead-letters/0:1"],
)  # fmt: skip
def test_what_does_not_exist_is_not_found(client: Client, path: str) -> None:
    status, headers, text = client.ask(path)
    assert status == 404
    assert "This page does not exist" in text
    assert headers["Content-Security-Policy"]


def test_looks_do_not_ask_again(client: Client) -> None:
    client.ask("/")
    before = client.facts.asked.count("overview")
    for _ in range(3):
        client.ask("/")
    assert client.facts.asked.count("overview") <= before + 1


def test_facts_that_take_long_are_announced_and_a_defect_says_nothing_of_its_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    facts = GivenFacts(many(3))
    facts.answers.clear()
    with served(facts) as address:
        client = Client(address, facts)
        status, headers, text = client.ask("/pipelines/orders_1")
        assert (status, headers["Retry-After"]) == (503, "2")
        assert "The facts are being read" in text
        facts.answers.set()
        while client.ask("/")[0] == 503:
            pass
        monkeypatch.setattr(facts, "detail", lambda name: 1 / 0)
        status, headers, text = client.ask("/pipelines/orders_1")
        assert status == 500
        assert "ZeroDivisionError" in text
        assert "division by zero" not in text
        assert headers["Content-Security-Policy"]


def test_the_first_look_at_a_pipeline_waits_once_for_all_pipelines_and_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now, waits = [0.0], list[float]()

    class Slow:
        """Facts whose reading takes 1.2 seconds."""

        def __init__(self, read: Any, *_: Any, **__: Any) -> None:
            self._read = read

        def look(self, patience: float = PATIENCE_SECONDS) -> Known[Any]:
            waits.append(round(patience, 3))
            now[0] += 1.2 if patience else 0.0
            return Known(self._read(), 0.0)

    monkeypatch.setattr(server, "Refreshing", Slow)
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: now[0]))
    scope = {"type": "http", "path": "/pipelines/orders_1", "path_params": {"name": "orders_1"}, "headers": []}
    pages = server.Pages(GivenFacts(many(3)))
    assert pages.pipeline(Request({**scope, "query_string": b"", "server": ("127.0.0.1", 1)})).status_code == 200
    assert waits == [1.5, 0.0, 0.3]


def test_no_secret_is_on_a_page_of_a_real_table(tmp_path: Path) -> None:
    landed = Landed(tmp_path)
    landed.land({0: 100, 1: 50}, rejected={(0, 7): b"password=hunter2secret"}, reason="hunter2secret")
    secrets = Secrets({})
    secrets.redactor.add("hunter2secret")
    with served(facts_of(landed, proofs=tmp_path, secrets=secrets)) as address:
        client = Client(address, GivenFacts(()))
        for path in ("/", "/pipelines/orders", "/pipelines/orders/dead-letters/0:7"):
            deadline = time.monotonic() + 60
            while (found := client.ask(path))[0] == 503:
                assert time.monotonic() < deadline
            assert found[0] == 200
            assert "hunter2" not in found[2]
            assert b"hunter2".hex()[:4] not in found[2]  # nor as hexadecimal digits
    assert "[redacted]" in found[2]


def test_the_usual_port_gives_way_to_a_free_one_and_another_does_not() -> None:
    with bound(0, is_usual=False) as taken:
        port = taken.getsockname()[1]
        with bound(port, is_usual=True) as other:
            assert other.getsockname()[0] == "127.0.0.1"
            assert other.getsockname()[1] != port
        with pytest.raises(OSError, match="in use"):
            bound(port, is_usual=False)
    assert isinstance(taken, socket.socket)


def test_chromium_shows_500_pipelines_and_filters_as_you_type(client: Client) -> None:
    visible = "[...document.querySelectorAll('tbody')].filter(one => !one.hidden).length"
    with browser() as chromium:
        page = chromium.new_page()
        problems: list[str] = []
        page.on("console", lambda message: problems.append(message.text))
        page.goto(client.address)
        assert page.evaluate(visible) == 500
        page.keyboard.press("/")
        page.keyboard.type("orders_49")
        assert page.evaluate(visible) == 11
        assert page.locator("#found").inner_text() == "11 of 500"
    assert problems == []
