"""A server of the tests' own: a thread serves it, and the `with` block ends it."""

from __future__ import annotations

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

from frazil.local.ports import HOST


class LocalServer(ThreadingHTTPServer):
    """Serves `address` by a handler, whose `server` it is."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__((HOST, 0), handler)
        self._scheme = "http"
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    @property
    def address(self) -> str:
        return f"{self._scheme}://{HOST}:{self.server_port}"

    def secure(self, certificate: str | Path, key: str | Path) -> None:
        """Speak TLS from now on."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self._scheme = "https"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that close the connection, which tests cause on purpose."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()


class QuietHandler(BaseHTTPRequestHandler):
    """A handler that logs nothing."""

    def body(self) -> bytes:
        """Read the body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        """Send an answer of a known length."""
        self.send_response_only(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
