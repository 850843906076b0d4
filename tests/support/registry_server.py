"""A schema registry over HTTP, as a thread: Confluent's API by the letter, and misbehaviour on demand."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from frazil.clients.registry.schemas import RegisteredSchema, schema_from, to_answer
from tests.support.local_server import LocalServer, QuietHandler
from tests.support.schema_store import SchemaStore

Misbehaviour = Callable[["_Handler"], None]


def says(status: int, body: str | bytes = "", **headers: str) -> Misbehaviour:
    """Answer every request with this."""
    data = body.encode() if isinstance(body, str) else body

    def misbehave(handler: _Handler) -> None:
        handler.answer(status, data, {name.replace("_", "-"): value for name, value in headers.items()})

    return misbehave


def cuts(handler: _Handler) -> None:
    """Promise a body, send half of it, and close the connection."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100")
    handler.end_headers()
    handler.wfile.write(b'{"schema":')
    handler.wfile.flush()
    handler.connection.shutdown(socket.SHUT_RDWR)


def hangs(handler: _Handler) -> None:
    """Accept the request and send no answer until the test ends."""
    handler.server.ended.wait(10)
    handler.close_connection = True


def drips(handler: _Handler) -> None:
    """Send a body without an end, byte by byte; each byte arrives in time."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    while not handler.server.ended.wait(0.002):
        try:
            handler.wfile.write(b"1\r\n \r\n")
            handler.wfile.flush()
        except OSError:
            return


class RegistryServer(LocalServer):
    """Serves a store at `url` while its `with` block runs.

    `misbehaviours` are used up one a request, `always` is for all of them. `authorization` is the header that is
    wanted; without `has_guids` and `knows_deleted` it is a simpler registry. `requests` are the paths that were asked
    for, `authorizations` and `headers` what came with them, `connections` how many clients have connected.
    """

    def __init__(self, *, authorization: str | None = None, has_guids: bool = True, knows_deleted: bool = True) -> None:
        super().__init__(_Handler)
        self.store = SchemaStore()
        self.authorization, self.has_guids, self.knows_deleted = authorization, has_guids, knows_deleted
        self.misbehaviours: deque[Misbehaviour] = deque()
        self.always: Misbehaviour | None = None
        self.requests: list[str] = []
        self.authorizations: list[str | None] = []
        self.headers: list[dict[str, str]] = []
        self.connections = 0
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        return f"{self.address}/base"

    def __exit__(self, *raised: object) -> None:
        self.ended.set()
        super().__exit__(*raised)


class _Handler(QuietHandler):
    server: RegistryServer
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def answer(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        super().answer(status, data, {"Content-Type": "application/vnd.schemaregistry.v1+json", **(headers or {})})

    def handle_one(self) -> None:
        registry, body = self.server, self.body()
        registry.requests.append(self.path)
        registry.authorizations.append(self.headers.get("Authorization"))
        registry.headers.append(dict(self.headers.items()))
        if registry.misbehaviours:
            return registry.misbehaviours.popleft()(self)
        if registry.always:
            return registry.always(self)
        if registry.authorization and self.headers.get("Authorization") != registry.authorization:
            return self.refuse(401, 401, "Unauthorized")
        parts = urlsplit(self.path)
        deleted = parse_qs(parts.query).get("deleted") == ["true"]
        if parts.query and "deleted" in parts.query and not registry.knows_deleted:
            return self.refuse(400, 400, "unknown parameter")
        permanent = parse_qs(parts.query).get("permanent") == ["true"]
        return self.route(parts.path.removeprefix("/base"), json.loads(body or b"null"), deleted, permanent)

    do_GET = do_POST = do_DELETE = do_PUT = handle_one  # noqa: N815 - http.server's names

    def refuse(self, status: int, code: int, message: str) -> None:
        self.answer(status, json.dumps({"error_code": code, "message": message}).encode())

    def tell(self, body: Any) -> None:
        self.answer(200, json.dumps(body).encode())

    def route(self, path: str, body: Any, deleted: bool, permanent: bool) -> None:
        store = self.server.store
        if path == "/subjects" and self.command == "GET":
            return self.tell([name for name in store.versions if store.listed(name, deleted=deleted)])
        if found := re.fullmatch(r"/schemas/ids/(\d+)", path):
            schema = store.schemas.get(int(found[1]))
            return self.tell(_said(schema)) if schema else self.refuse(404, 40403, "Schema not found")
        if found := re.fullmatch(r"/schemas/ids/(\d+)/versions", path):
            if int(found[1]) not in store.schemas:
                return self.refuse(404, 40403, "Schema not found")
            pairs = [(name, version) for name in store.versions for version in store.listed(name, deleted=deleted)]
            holding = [(name, one.number) for name, one in pairs if one.schema_id == int(found[1])]
            return self.tell([{"subject": name, "version": number} for name, number in holding])
        if (found := re.fullmatch(r"/schemas/guids/([^/]+)/ids", path)) and self.server.has_guids:
            ids = [{"context": ".", "id": number} for number in store.schemas if store.guid(number) == found[1]]
            return self.tell(ids) if ids else self.refuse(404, 40403, "Schema not found")
        if found := re.fullmatch(r"/subjects/([^/]+)(?:/versions(?:/(\d+))?)?", path):
            return self.subject(unquote(found[1]), path, int(found[2] or 0), body, deleted, permanent)
        return self.answer(404, b"<html>no such page</html>", {"Content-Type": "text/html"})

    def subject(self, name: str, path: str, number: int, body: Any, deleted: bool, permanent: bool) -> None:
        store = self.server.store
        if self.command == "POST":
            schema = schema_from(body, 0)
            return self.tell({"id": store.register(name, schema.text, schema.type, schema.references)})
        if name not in store.versions:
            return self.refuse(404, 40401, f"Subject '{name}' not found.")
        if self.command == "DELETE" and number:
            store.delete_version(name, number)
            return self.tell(number)
        if self.command == "DELETE":
            store.delete_subject(name, permanent=permanent)
            return self.tell([])
        listed = store.listed(name, deleted=deleted)
        if not listed:
            return self.refuse(404, 40404, f"Subject '{name}' was soft deleted.")
        if path.endswith("/versions"):
            return self.tell([version.number for version in listed])
        for version in listed:
            if version.number == number:
                guid = {"guid": store.guid(version.schema_id)} if self.server.has_guids else {}
                said = {"subject": name, "version": number, "id": version.schema_id, **guid}
                return self.tell(said | _said(store.schemas[version.schema_id]))
        return self.refuse(404, 40402, "Version not found.")


def _said(schema: RegisteredSchema) -> dict[str, Any]:
    """Return the schema as Confluent's registry does: without the type if it is Avro, without references if it has
    none.
    """
    answer = to_answer(schema)
    if answer["schemaType"] == "AVRO":
        del answer["schemaType"]
    if not answer["references"]:
        del answer["references"]
    return answer
