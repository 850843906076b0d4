"""A relay before a service: requests arrive there with the headers of the client, `Host` too, so signatures stay valid."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from email.message import Message
from urllib.parse import urlsplit

from tests.support.local_server import LocalServer, QuietHandler

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What the service answers, or the relay instead of it."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class Relay(LocalServer):
    """The relay before the service at `behind`, an HTTP address."""

    def __init__(self, behind: str) -> None:
        super().__init__(_Relayed)
        self.behind = urlsplit(behind)

    @property
    def uri(self) -> str:
        """The relay's address, instead of the service's."""
        return self.address + self.behind.path

    def relayed(self, method: str, target: str, headers: Message, ask: Callable[[], Answer]) -> Answer:
        """Return the answer to a request, which `ask` passes on."""
        return ask()


class _Relayed(QuietHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Relay

    def _relay(self) -> None:
        assert "Transfer-Encoding" not in self.headers, "a body without a length"
        body = self.body()

        def ask() -> Answer:
            connection = http.client.HTTPConnection(self.server.behind.netloc, timeout=60)
            connection.request(self.command, self.path, body or None, _kept(self.headers.items()))
            answer = connection.getresponse()
            found = answer.read()
            connection.close()
            return Answer(answer.status, _kept(answer.getheaders()), found)

        answer = self.server.relayed(self.command, self.path, self.headers, ask)
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status != 204 and not any(name.lower() == "content-length" for name in answer.headers):
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _relay  # noqa: N815 - the names of the base class


def _kept(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name: value for name, value in headers if name.lower() not in _HOP_BY_HOP}
