"""The counting proxy forwards bytes as they are, and knows what a request does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from bench.counting_proxy import CountingProxy, Kind, classified, counting

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Odd:  kept \r\n\r\nok"


@contextmanager
def store(received: list[bytes], ends: list[bytes]) -> Iterator[CountingProxy]:
    """Serve behind a proxy: answer whenever what was received ends as a request does."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                held = b""
                while piece := connection.recv(1 << 16):
                    held += piece
                    if ends and held.endswith(ends[0]):
                        received.append(held)
                        connection.sendall(ANSWER)
                        held = b""
                        ends.pop(0)

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        with counting(f"http://127.0.0.1:{listening.getsockname()[1]}") as proxy:
            yield proxy
        serving.join(timeout=10)


@pytest.mark.parametrize(
    ("method", "target", "asked"),
    [
        ("PUT", "/lake/warehouse/b.db/t/data/a.parquet", (Kind.PUT, "data")),
        ("GET", "/lake/warehouse/b.db/t/metadata/snap-1.avro", (Kind.GET, "metadata")),
        ("HEAD", "/lake/warehouse/b.db/t/data/data.parquet", (Kind.HEAD, "data")),
        ("GET", "/lake/releases/metadata", (Kind.GET, "other")),
        ("GET", "/lake?list-type=2&prefix=warehouse%2Fb.db%2Ft%2Fmetadata%2F", (Kind.LIST, "metadata")),
        ("GET", "/lake/?prefix=", (Kind.LIST, "other")),
        ("DELETE", "/lake/t/metadata/1.json", (Kind.DELETE, "metadata")),
        ("POST", "/lake?delete", (Kind.DELETE, "other")),
        ("POST", "/lake/t/data/a.parquet?uploads", (Kind.MULTIPART, "data")),
        ("PUT", "/lake/t/data/a.parquet?partNumber=1&uploadId=x", (Kind.MULTIPART, "data")),
    ],
)
def test_a_request_has_a_kind_and_a_class_of_key(method: str, target: str, asked: tuple[Kind, str]) -> None:
    assert classified(method, target, {}) == asked


def test_an_operation_of_the_catalog_is_known_by_its_name() -> None:
    assert classified("POST", "/", {"x-amz-target": "AWSGlue.UpdateTable"}) == (Kind.CATALOG, "UpdateTable")


def test_the_bytes_of_each_request_arrive_unchanged_on_one_connection() -> None:
    sent = [
        b"PUT /b/t/data/a HTTP/1.1\r\nHost: somewhere:80\r\nX-Odd:   two  blanks \r\ncontent-LENGTH: 5\r\n\r\n\r\n\x00\xff1",
        b"PUT /b/t/metadata/m HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;sig=1\r\nabc\r\n0\r\nTrail: er\r\n\r\n",
        b"GET /b/t/metadata/m HTTP/1.1\r\nHost: x\r\n\r\n",
    ]
    received: list[bytes] = []
    with store(received, [request[-5:] for request in sent]) as proxy:
        place = urlsplit(proxy.address)
        with socket.create_connection((place.hostname or "", place.port or 0), timeout=10) as client:
            for request in sent:
                client.sendall(request)
                answer = b""
                while len(answer) < len(ANSWER):
                    answer += client.recv(len(ANSWER))
                assert answer == ANSWER
        counted = proxy.counted()
    assert received == sent
    assert counted == {(Kind.PUT, "data"): 1, (Kind.PUT, "metadata"): 1, (Kind.GET, "metadata"): 1}
