"""Programs that are unpacked once from a locked archive, into the user's cache."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def unpacked(folder: Path, program: str, unpack: Callable[[Path], None]) -> Path:
    """Return the file `program` of a folder in the cache. If it does not exist, call `unpack` with an empty folder first.

    Safe to call from several processes. A killed call leaves no incomplete folder.
    """
    wanted = folder / program
    if wanted.is_file():
        return wanted
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not wanted.is_file():
            with tempfile.TemporaryDirectory(prefix=".unpack-", dir=folder.parent) as temporary:
                unfinished = Path(temporary, "unfinished")
                unfinished.mkdir()
                unpack(unfinished)
                shutil.rmtree(folder, ignore_errors=True)
                unfinished.rename(folder)
    return wanted
