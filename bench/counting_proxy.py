"""A relay before a local object store that counts requests by method, kind and class of key."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from email.message import Message
from enum import StrEnum
from urllib.parse import parse_qs, urlsplit

from tests.support.relay import Answer, Relay


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


def classified(method: str, target: str, operation: str | None = None) -> Asked:
    """Return the kind of a request, and the class of its key. `operation` is one of Glue's."""
    if operation:
        return Kind.CATALOG, operation.rpartition(".")[2]
    path, asked = urlsplit(target).path, parse_qs(urlsplit(target).query, keep_blank_values=True)
    folders = path.split("/")[:-1]
    of = next((name for name in ("metadata", "data") if name in folders), "other")
    if asked.keys() & {"uploads", "uploadId"}:
        return Kind.MULTIPART, of
    if method == "POST" and "delete" in asked:
        return Kind.DELETE, of
    if method == "GET" and asked.keys() & {"list-type", "prefix"}:
        parts = asked.get("prefix", [""])[0].split("/")
        return Kind.LIST, next((name for name in ("metadata", "data") if name in parts), "other")
    return Kind(method), of


class CountingProxy(Relay):
    """A running proxy. `delay_seconds` holds back each request, as a distant store would."""

    def __init__(self, behind: str) -> None:
        super().__init__(behind)
        self.delay_seconds = 0.0
        self._counts: Counter[Asked] = Counter()
        self._lock = threading.Lock()

    def counted(self) -> Counter[Asked]:
        """Return the requests so far."""
        with self._lock:
            return Counter(self._counts)

    def relayed(self, method: str, target: str, headers: Message, ask: Callable[[], Answer]) -> Answer:
        """Count a request, and pass it on after the delay."""
        with self._lock:
            self._counts[classified(method, target, headers.get("X-Amz-Target"))] += 1
        time.sleep(self.delay_seconds)
        return ask()
