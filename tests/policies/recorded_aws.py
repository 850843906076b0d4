"""AWS in this process, with a log of what was asked of it: each request as IAM's action and the resource that it names.

S3's operations are not its actions: a HEAD needs `s3:GetObject`, a part of an upload `s3:PutObject`. Which is which:
https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-with-s3-policy-actions.html
"""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote
from xml.etree import ElementTree

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from tests.standin.aws.glue import patch_glue

ACCOUNT, REGION = "123456789012", "us-east-1"
HOST = "127.0.0.1"
Start = Callable[..., Any]


class Call(NamedTuple):
    """One request: IAM's action, and what it is about: `bucket/key`, or `database/table`, or for a listing `bucket?prefix`."""

    action: str
    what: str


class Log:
    """The calls, in order. A request that this module does not know is an error, told when the calls are asked for."""

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._unknown: list[str] = []
        self._lock = threading.Lock()

    def add(self, calls: Iterable[Call], request: str) -> None:
        """Note what a request asked for; nothing at all makes it an unknown one."""
        found = list(calls)
        with self._lock:
            self._calls += found
            if not found:
                self._unknown.append(request)

    def forget(self) -> None:
        """Leave out what was asked so far."""
        with self._lock:
            self._calls, self._unknown = [], []

    def take(self) -> list[Call]:
        """The calls since the last time."""
        with self._lock:
            assert not self._unknown, f"requests whose action is not known: {self._unknown}"
            taken, self._calls = self._calls, []
        return taken


@contextmanager
def recorded_aws() -> Iterator[tuple[str, Log]]:
    """Serve moto in a thread; its address, and the log of what is asked of it: Glue's tables and S3's objects."""
    patch_glue()
    log, application = Log(), DomainDispatcherApplication(create_backend_app)

    def noted(environ: dict[str, Any], start_response: Start) -> Iterable[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        is_read = environ["REQUEST_METHOD"] == "POST"  # the body of an upload tells nothing, and is large
        body = environ["wsgi.input"].read(length) if is_read else b""
        if is_read:
            environ["wsgi.input"] = io.BytesIO(body)
        is_look = (environ["REQUEST_METHOD"], environ["PATH_INFO"]) == ("HEAD", "/")
        if not is_look or "HTTP_AUTHORIZATION" in environ:  # else it reads the time only, and needs no permission
            log.add(
                _calls(environ, body), f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}?{environ['QUERY_STRING']}"
            )
        return application(environ, start_response)  # type: ignore[no-any-return]

    server = make_server(HOST, 0, noted, threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}", log
    finally:
        server.shutdown()
        thread.join(10)


def _calls(environ: dict[str, Any], body: bytes) -> Iterator[Call]:
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    if target.startswith("AWSGlue."):
        asked = json.loads(body)
        table = asked.get("Name") or asked.get("TableInput", {}).get("Name")
        if target.endswith("Database"):
            yield Call(f"glue:{target[8:]}", asked.get("Name") or asked["DatabaseInput"]["Name"])
        elif table:
            yield Call(f"glue:{target[8:]}", f"{asked['DatabaseName']}/{table}")
        elif "DatabaseName" in asked:
            yield Call(f"glue:{target[8:]}", f"{asked['DatabaseName']}/")
        return
    yield from _s3_calls(environ, body)


def _s3_calls(environ: dict[str, Any], body: bytes) -> Iterator[Call]:
    method, path = environ["REQUEST_METHOD"], unquote(environ["PATH_INFO"]).lstrip("/")
    query = parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
    bucket, _, key = path.partition("/")
    match method:
        case "GET" | "HEAD" if key:
            yield Call("s3:GetObject", path)
        case "GET" if "list-type" in query:
            yield Call("s3:ListBucket", f"{bucket}?{query.get('prefix', [''])[0]}")
        case "PUT" if (
            key and "HTTP_X_AMZ_COPY_SOURCE" not in environ and not query.keys() - {"partNumber", "uploadId", "x-id"}
        ):
            yield Call("s3:PutObject", path)
        case "POST" if key and query.keys() & {"uploads", "uploadId"}:
            yield Call("s3:PutObject", path)
        case "DELETE" if key and "uploadId" in query:
            yield Call("s3:AbortMultipartUpload", path)
        case "DELETE" if key:
            yield Call("s3:DeleteObject", path)
        case "POST" if "delete" in query:
            root = ElementTree.fromstring(body)
            for found in root.iter():
                if re.sub("{.*}", "", found.tag) == "Key":
                    yield Call("s3:DeleteObject", f"{bucket}/{found.text}")
