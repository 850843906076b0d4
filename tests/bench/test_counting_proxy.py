"""The counting proxy forwards requests as they are, and knows what a request does."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

import pytest

from bench.counting_proxy import CountingProxy, Kind, classified
from tests.support.local_server import LocalServer, QuietHandler


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
    assert classified(method, target) == asked


def test_an_operation_of_the_catalog_is_known_by_its_name() -> None:
    assert classified("POST", "/", "AWSGlue.UpdateTable") == (Kind.CATALOG, "UpdateTable")


def test_requests_arrive_unchanged_and_answers_come_back() -> None:
    received = []

    class Store(QuietHandler):
        def handle_one(self) -> None:
            received.append((self.command, self.path, self.headers["Host"], self.headers["X-Odd"], self.body()))
            self.send_response_only(206)
            self.send_header("Content-Length", "2")
            self.send_header("ETag", "a tag")
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else b"\x00\xff")

        do_PUT = do_GET = do_HEAD = handle_one  # noqa: N815 - http.server's names

    sent = [
        ("PUT", "/b/t/data/a%20b", b"\r\n\x00\xff1"),
        ("HEAD", "/b/t/data/a", b""),
        ("GET", "/b/t/metadata/m?x", b""),
    ]
    with LocalServer(Store) as store, CountingProxy(store.address) as proxy:
        client = http.client.HTTPConnection(urlsplit(proxy.uri).netloc, timeout=10)
        for method, target, body in sent:
            client.request(method, target, body, {"Host": "somewhere:80", "X-Odd": "two  blanks"})
            answer = client.getresponse()
            assert (answer.status, answer.headers["Content-Length"], answer.headers["ETag"]) == (206, "2", "a tag")
            assert answer.read() == (b"" if method == "HEAD" else b"\x00\xff")
        client.close()
    assert received == [(method, target, "somewhere:80", "two  blanks", body) for method, target, body in sent]
    assert proxy.counted() == {(Kind.PUT, "data"): 1, (Kind.HEAD, "data"): 1, (Kind.GET, "metadata"): 1}
