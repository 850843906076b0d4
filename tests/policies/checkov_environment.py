"""Checkov in a virtual environment of its own, by `checkov.lock`: what it pins cannot stand beside what Frazil needs.

It is in the user's cache folder, named by the content of the lock, and made once: about 290 MB, half a minute.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from frazil.local.toolchain.jars import cache_folder

LOCK = Path(__file__).with_name("checkov.lock")
_NOT_REACHED = ("(from versions: none)", "Max retries exceeded")
"""What pip says when no index answers. Of one that does, it tells which versions it has."""


class OutOfReach(Exception):
    """No package index answers from here."""


def python_with_checkov() -> Path:
    """The Python that has checkov. Raises `OutOfReach` when it must be made and no index answers."""
    folder = cache_folder() / "checkov"
    place = folder / hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]
    python, complete = place / "bin" / "python", place / ".complete"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        # It is made where it stays, as its scripts name their own folder; the mark comes last. Its Python is a link.
        if not (complete.is_file() and python.exists()):
            shutil.rmtree(place, ignore_errors=True)
            _run([sys.executable, "-m", "venv", place])
            _run([python, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", LOCK])
            complete.touch()
    return python


def _run(command: Sequence[str | Path]) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode and any(sign in ended.stderr for sign in _NOT_REACHED):
        raise OutOfReach(ended.stderr.strip().splitlines()[-1])
    assert ended.returncode == 0, ended.stdout + ended.stderr
