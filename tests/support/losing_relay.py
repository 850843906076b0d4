"""A relay in front of a REST catalog that loses a commit, or the answer to one: the client gets `502 Bad Gateway`."""

from __future__ import annotations

import http.client
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from frazil.local.ports import HOST

COMMIT = re.compile(r"/tables/[^/?]+$")
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


class Lost(StrEnum):
    """What is lost: the request, so that nothing is committed, or the answer."""

    COMMIT = "commit"
    ANSWER = "answer"


class LosingRelay(ThreadingHTTPServer):
    """The relay. `loses` is what it loses next; `lost` is what it has lost."""

    daemon_threads = True

    def __init__(self, uri: str) -> None:
        super().__init__((HOST, 0), _Relayed)
        self.behind = urlsplit(uri)
        self.uri = f"http://{HOST}:{self.server_port}{self.behind.path}"
        self.loses: Lost | None = None
        self.lost: list[Lost] = []


class _Relayed(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: LosingRelay

    def _relay(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        is_commit = self.command == "POST" and COMMIT.search(self.path) is not None
        loses = self.server.loses if is_commit else None
        if loses is not None:
            self.server.loses = None
            self.server.lost.append(loses)
        if loses is Lost.COMMIT:
            self._answer(502, {}, b"")
            return
        connection = http.client.HTTPConnection(self.server.behind.netloc, timeout=60)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        found = answer.read()
        connection.close()
        if loses is Lost.ANSWER:
            assert answer.status == 200, found
            self._answer(502, {}, b"")
            return
        kept = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP}
        self._answer(answer.status, kept, found)

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _relay  # noqa: N815 - the names of the base class


@contextmanager
def losing_relay(uri: str) -> Iterator[LosingRelay]:
    """Relay a catalog's requests, which are signed for the relay's address, and lose nothing yet."""
    with LosingRelay(uri) as relay:
        thread = threading.Thread(target=relay.serve_forever)
        thread.start()
        try:
            yield relay
        finally:
            relay.shutdown()
            thread.join()
