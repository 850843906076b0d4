"""What a person sees while jars are fetched: a bar on a terminal, two lines in a log."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from frazil.local.toolchain.maven import Artifact

POLL_SECONDS = 0.2


@contextmanager
def shown(artifacts: Sequence[Artifact], folder: Path, stream: TextIO) -> Iterator[None]:
    """Show on `stream` how much of the artifacts has arrived in `folder`, while the block fetches them.

    If the lock has no sizes, the bar shows no share.
    """
    sizes = [artifact.size_bytes for artifact in artifacts]
    total = sum(sizes) if all(sizes) else None
    what = f"{len(artifacts)} jars" if len(artifacts) != 1 else artifacts[0].name
    if not stream.isatty():
        began = time.monotonic()
        _say(
            stream, f"fetching {what}{'' if total is None else f', {total / 1e6:.1f} MB'}; they are kept for later runs"
        )
        yield
        _say(stream, f"fetched {what} in {time.monotonic() - began:.0f} s")
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=stream)) as progress:
        task = progress.add_task(f"fetching {what}", total=total)
        with _repeated(lambda: progress.update(task, completed=_arrived(folder, total))):
            yield
        progress.update(task, completed=total)


def _say(stream: TextIO, line: str) -> None:
    stream.write(f"{line}\n")
    stream.flush()


@contextmanager
def _repeated(act: Callable[[], None]) -> Iterator[None]:
    """Act now and then, on a thread that ends with the block."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(POLL_SECONDS):
            act()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _arrived(folder: Path, total: int | None) -> int:
    """Return the bytes of the files in a folder, at most `total`: Ivy writes a few of its own. Files may go meanwhile."""
    size = 0
    for file in folder.rglob("*"):
        try:
            size += file.stat().st_size if file.is_file() else 0
        except FileNotFoundError:
            continue
    return size if total is None else min(size, total)
