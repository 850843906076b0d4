"""An HTTP proxy before a local object store that counts requests by method, kind and class of key.

It forwards the bytes of both directions unchanged, the header Host included, so signatures stay valid. It reads only what it needs to
find the end of a request. A request that it cannot read closes the connection.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import BinaryIO
from urllib.parse import parse_qs, urlsplit

HOST = "127.0.0.1"
_PIECE = 1 << 16


class Kind(StrEnum):
    """The operation of a request. `CATALOG` is an operation of Glue, whose name replaces the class of the key."""

    PUT = "PUT"
    GET = "GET"
    HEAD = "HEAD"
    LIST = "LIST"
    DELETE = "DELETE"
    MULTIPART = "multipart"
    CATALOG = "Glue"


Asked = tuple[Kind, str]
"""A kind, and the class of the key: `data`, `metadata` or `other`."""


def classified(method: str, target: str, headers: Mapping[str, str]) -> Asked:
    """Return the kind of a request, and the class of its key. Names of headers are lower-case."""
    if operation := headers.get("x-amz-target"):
        return Kind.CATALOG, operation.rpartition(".")[2]
    path, asked = urlsplit(target).path, parse_qs(urlsplit(target).query, keep_blank_values=True)
    folders = path.split("/")[:-1]
    of = next((name for name in ("metadata", "data") if name in folders), "other")
    if asked.keys() & {"uploads", "uploadId"}:
        return Kind.MULTIPART, of
    if method == "POST" and "delete" in asked:
        return Kind.DELETE, of
    if method == "GET" and asked.keys() & {"list-type", "prefix"}:
        return Kind.LIST, _class_of_prefix(asked.get("prefix", [""])[0])
    return Kind(method), of


def _class_of_prefix(prefix: str) -> str:
    return next((name for name in ("metadata", "data") if name in prefix.split("/")), "other")


class CountingProxy:
    """A running proxy. `delay_seconds` holds back each request, as a distant store would."""

    def __init__(self, upstream: tuple[str, int]) -> None:
        self.upstream, self.delay_seconds = upstream, 0.0
        self._counts: Counter[Asked] = Counter()
        self._lock = threading.Lock()
        self._server = _Server(self)

    @property
    def address(self) -> str:
        """The proxy's address, instead of the store's."""
        return f"http://{HOST}:{self._server.server_address[1]}"

    def counted(self) -> Counter[Asked]:
        """Return the requests so far."""
        with self._lock:
            return Counter(self._counts)

    def count(self, asked: Asked) -> None:
        """Count a request."""
        with self._lock:
            self._counts[asked] += 1


@contextmanager
def counting(endpoint: str) -> Iterator[CountingProxy]:
    """Run a proxy before the store at `endpoint`, an HTTP address, until the block ends."""
    place = urlsplit(endpoint)
    assert place.hostname is not None
    assert place.port is not None
    proxy = CountingProxy((place.hostname, place.port))
    serving = threading.Thread(target=proxy._server.serve_forever, daemon=True)
    serving.start()
    try:
        yield proxy
    finally:
        proxy._server.shutdown()
        proxy._server.server_close()
        serving.join()


class _Server(ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False  # clients keep their connections

    def __init__(self, proxy: CountingProxy) -> None:
        self.proxy = proxy
        super().__init__((HOST, 0), _Connection)


class _Connection(StreamRequestHandler):
    """One connection of a client, with one of its own to the store: requests are read, answers are only copied."""

    server: _Server
    rbufsize = _PIECE
    disable_nagle_algorithm = True

    def handle(self) -> None:
        proxy = self.server.proxy
        with socket.create_connection(proxy.upstream) as store:
            store.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answers = threading.Thread(target=_copy, args=(store, self.connection), daemon=True)
            answers.start()
            with suppress(OSError, ValueError):
                while head := _head(self.rfile):
                    method, target, headers = _read(head)
                    proxy.count(classified(method, target, headers))
                    if proxy.delay_seconds:
                        time.sleep(proxy.delay_seconds)
                    store.sendall(head)
                    for piece in _body(self.rfile, headers):
                        store.sendall(piece)
            with suppress(OSError):
                store.shutdown(socket.SHUT_WR)
            answers.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy what comes until one side ends."""
    with suppress(OSError):
        while piece := source.recv(_PIECE):
            target.sendall(piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


def _head(stream: BinaryIO) -> bytes:
    """Return the next request's first lines, with the empty one; nothing at the end of the connection."""
    lines = [stream.readline(_PIECE)]
    while lines[-1] not in (b"\r\n", b""):
        lines.append(stream.readline(_PIECE))
    return b"".join(lines) if lines[-1] else b""


def _read(head: bytes) -> tuple[str, str, dict[str, str]]:
    """Return method, target and headers."""
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    method, target, _ = first.split(" ", 2)
    named = (line.partition(":") for line in lines)
    return method, target, {name.strip().lower(): value.strip() for name, _, value in named}


def _body(stream: BinaryIO, headers: Mapping[str, str]) -> Iterator[bytes]:
    """Yield the body's bytes as they come, with the marks between its chunks."""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while True:
            yield (line := stream.readline(_PIECE))
            size = int(line.partition(b";")[0], 16)
            yield from _pieces(stream, size)
            if not size:
                while line not in (b"\r\n", b""):
                    yield (line := stream.readline(_PIECE))
                return
            yield stream.readline(_PIECE)
    yield from _pieces(stream, int(headers.get("content-length", 0)))


def _pieces(stream: BinaryIO, left: int) -> Iterator[bytes]:
    while left:
        piece = stream.read(min(left, _PIECE))
        if not piece:
            raise ConnectionError("the client ended within a request")
        left -= len(piece)
        yield piece
