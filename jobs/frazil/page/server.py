"""The server of the page: this machine only, GET and HEAD only, under names that no other site can have."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from frazil.clients.daemon_threads import DaemonThreads
from frazil.errors import FrazilError
from frazil.page.facts import PARALLEL, Facts, Overview
from frazil.page.refreshing import PATIENCE_SECONDS, Known, Refreshing, begun_later
from frazil.page.rendering import STATIC, Choice, Rendering

HOST = "127.0.0.1"
NAMES = (HOST, "localhost")
"""The names of this machine. Another one in `Host` is a site that resolves to it (DNS rebinding)."""
MOST_KEPT = 1_000
"""Pipelines and dead letters whose facts are kept."""
FILES = ("page.css", "page.js", "icon.svg")
POLICY = "; ".join(
    (
        *("default-src 'none'", "style-src 'self'", "script-src 'self'", "img-src 'self'"),
        *("base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'"),
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guarded:
    """Refuses requests of other hosts and other methods, and adds the headers of `HEADERS` to each answer."""

    def __init__(self, app: ASGIApp, *, port: int) -> None:
        self._app = app
        self._hosts = {f"{name}:{port}" for name in NAMES}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        app = self._app
        if Headers(scope=scope).getlist("host") not in [[host] for host in self._hosts]:
            app = PlainTextResponse("This host is not known here.\n", status_code=421)
        elif scope["method"] not in ("GET", "HEAD"):
            app = PlainTextResponse("The page is read only.\n", status_code=405, headers={"Allow": "GET, HEAD"})
        await app(scope, receive, guarded)


class Pages:
    """Answers requests from facts that are read in the background."""

    def __init__(self, facts: Facts) -> None:
        self._facts, self._rendering = facts, Rendering(facts.environment, facts.redactor)
        self._threads = DaemonThreads(PARALLEL, name="page")
        self._overview: Refreshing[Overview] = Refreshing(
            facts.overview, DaemonThreads(1, name="overview").submit, later=begun_later
        )
        self._kept: dict[str, Refreshing[Any]] = {}

    @property
    def app(self) -> Starlette:
        """The application."""
        routes = [
            Route("/", self.overview),
            Route("/pipelines/{name}", self.pipeline),
            Route("/pipelines/{name}/dead-letters/{partition:int}:{offset:int}", self.letter),
            *(Route(f"/static/{name}", partial(_file, STATIC / name)) for name in FILES),
        ]
        return Starlette(routes=routes, exception_handlers={HTTPException: self.problem, Exception: self.problem})

    def overview(self, request: Request) -> Response:
        """Answer with all pipelines."""
        known, asked = self._overview.look(), request.query_params
        if known is None:
            return self._reading(request)
        chosen = Choice(text=asked.get("q", "")[:200], state=asked.get("state", "")[:40])
        return HTMLResponse(self._rendering.overview(known.facts, age=known.age, chosen=chosen))

    def pipeline(self, request: Request) -> Response:
        """Answer with one pipeline."""
        name = request.path_params["name"]
        found = self._of_pipeline(request, partial(self._facts.detail, name))
        return HTMLResponse(self._rendering.pipeline(*found)) if found else self._reading(request)

    def letter(self, request: Request) -> Response:
        """Answer with a dead letter."""
        name, *place = request.path_params.values()
        try:
            found = self._of_pipeline(request, partial(self._facts.letter, name, tuple(place)))
        except FrazilError as error:
            return HTMLResponse(self._rendering.message("The dead letter cannot be read", str(error)), 503)
        if found is None:
            return self._reading(request)
        if found.facts is None:
            raise HTTPException(404)
        return HTMLResponse(self._rendering.letter(name, found.facts, at=time.time() - found.age, age=found.age))

    def problem(self, request: Request, error: Exception) -> Response:
        """Answer with a page of an error, which says nothing of its cause."""
        status = error.status_code if isinstance(error, HTTPException) else 500
        if status == 404:
            return HTMLResponse(self._rendering.message("Not found", "This page does not exist."), 404)
        what = f"This is a defect of Frazil ({type(error).__name__}). `frazil status` shows the pipelines, too."
        return HTMLResponse(self._rendering.message("The page failed", what), status)

    def _of_pipeline(self, request: Request, read: Callable[[], Any]) -> Known[Any] | None:
        """Return facts of a request's pipeline and their age; None if they are still read. Raises 404 for an unknown pipeline."""
        name, path, until = request.path_params["name"], request.url.path, time.monotonic() + PATIENCE_SECONDS
        if not self._facts.knows(name) and self._overview.look() is None:
            return None
        if not self._facts.knows(name):
            raise HTTPException(404)
        self._overview.look(patience=0)  # its readings go on
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        kept = self._kept.setdefault(path, Refreshing(read, self._threads.submit))
        return kept.look(max(until - time.monotonic(), 0.0))

    def _reading(self, request: Request) -> Response:
        what = "Catalog and Kafka are asked. The page reloads when they have answered."
        page = self._rendering.message("The facts are being read", what, reloads=request.url.path)
        return HTMLResponse(page, status_code=503, headers={"Retry-After": "2"})


def bound(port: int, *, is_usual: bool) -> socket.socket:
    """Return a socket that listens on a port of this machine; on a free one if the usual port is taken. Raises `OSError`."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HOST, port))
    except OSError:
        if not is_usual:
            made.close()
            raise
        made.bind((HOST, 0))
    made.listen(128)
    return made


def address(listening: socket.socket) -> str:
    """Return the page's address."""
    return f"http://{HOST}:{listening.getsockname()[1]}/"


@contextmanager
def serving(facts: Facts, listening: socket.socket) -> Iterator[None]:
    """Serve on a thread until the end of the block."""
    made = server(facts, listening)
    thread = threading.Thread(target=partial(made.run, sockets=[listening]), name="page-server", daemon=True)
    thread.start()
    try:
        yield
    finally:
        made.should_exit = True
        thread.join()


def server(facts: Facts, listening: socket.socket) -> uvicorn.Server:
    """Return a server of the page; its `run` ends when the process is interrupted."""
    app = Guarded(Pages(facts).app, port=listening.getsockname()[1])
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",  # a traceback may hold what is masked on pages
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def _file(path: Path, request: Request) -> Response:
    return FileResponse(path)
