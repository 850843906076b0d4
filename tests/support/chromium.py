"""A browser without a window, which opens no connection of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.debian import program

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_QUIET = ("background-networking", "component-update", "sync", "quic", "gpu")


@contextmanager
def browser() -> Iterator[Browser]:
    """Start Debian's Chromium."""
    path = program("chromium")
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in _QUIET)]
    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=path, args=arguments)
        try:
            yield started
        finally:
            started.close()
