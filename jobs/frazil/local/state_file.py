"""The state file of a project folder: which local parts are up, and how each is reached."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from frazil.errors import InvalidInput
from frazil.local.process import is_alive, noted

STATE_FILE = "local.json"
STATE_VERSION = 1

Address = Mapping[str, str]


def running_addresses(home: Path) -> dict[str, Address]:
    """Return the addresses of the parts that were up and whose process still runs."""
    try:
        state = json.loads((home / STATE_FILE).read_bytes())
        parts = state["parts"] if state["version"] == STATE_VERSION else {}
        known = {name: (part["pid"], part["address"]) for name, part in parts.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # missing or damaged
        return {}
    pids = {process.name: process.pid for process in noted(home) if is_alive(process)}
    return {name: address for name, (pid, address) in known.items() if pids.get(name) == pid}


def write_state(home: Path, addresses: Mapping[str, Address]) -> None:
    """Write which processes of a folder are up, and their addresses."""
    parts = {
        process.name: {"pid": process.pid, "started": process.started, "address": addresses[process.name]}
        for process in noted(home)
    }
    write_document(home / STATE_FILE, {"version": STATE_VERSION, "parts": parts})


def write_document(file: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON document; a reader sees the old one or the new one, never a part."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(document, indent=2) + "\n")
    unfinished.replace(file)


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Lock the folder against another `up` or `down`. Raises `InvalidInput` if it cannot be written."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        held = (home / ".lock").open("w")
    except OSError as error:
        raise InvalidInput.unwritable(home, error) from None
    with held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
