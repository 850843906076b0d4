"""Free ports, reserved until their server listens on them."""

from __future__ import annotations

import fcntl
import json
import socket
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zlib import crc32

from frazil.errors import InvalidInput, LocalPartFailed
from frazil.local.process import is_alive, noted

STATE_FILE = "local.json"
"""The file of the last starts: processes and addresses."""
STATE_VERSION = 1

Address = Mapping[str, str]


def running_addresses(home: Path) -> dict[str, Address]:
    """Return the addresses of the parts that were up and whose process still runs."""
    pids = {process.name: process.pid for process in noted(home) if is_alive(process)}
    return {name: address for name, (pid, address) in _starts(home).items() if pids.get(name) == pid}


def last_addresses(home: Path) -> dict[str, Address]:
    """Return the addresses that each part had at its last start."""
    return {name: address for name, (_, address) in _starts(home).items()}


def _starts(home: Path) -> dict[str, tuple[int | None, Address]]:
    """Return the process and the addresses of the last start of each part; none if the file is missing or damaged."""
    try:
        state = json.loads((home / STATE_FILE).read_bytes())
        parts = state["parts"] if state["version"] == STATE_VERSION else {}
        return {name: (part["pid"], {**part["address"]}) for name, part in parts.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def keep_addresses(home: Path, addresses: Mapping[str, Address]) -> tuple[Moved, ...]:
    """Write the processes and addresses of running parts, and return the parts that had another address at their last start."""
    last, pids = last_addresses(home), {process.name: process.pid for process in noted(home)}
    parts = {name: {"pid": pids.get(name), "address": address} for name, address in {**last, **addresses}.items()}
    write_document(home / STATE_FILE, {"version": STATE_VERSION, "parts": parts})
    return tuple(Moved(part, last[part], now) for part, now in addresses.items() if last.get(part, now) != now)


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


FIRST, RANGE = 20_000, 12_000


@dataclass(frozen=True, slots=True)
class Moved:
    """A service that has another address than at its last start."""

    part: str
    before: Address
    now: Address

    def __str__(self) -> str:
        """Return the sentence for people."""
        before, now = (" ".join(address.values()) for address in (self.before, self.now))
        return f"{self.part}: the address is now {now}, because another process uses a port of {before}"


def kept_ports(home: Path, part: str, count: int = 1) -> AbstractContextManager[tuple[int, ...]]:
    """Reserve the ports of a part's last addresses inside the `with` block; another one for each that is in use now."""
    last = last_addresses(home)
    ports = {name: _ports(address) for name, address in last.items()}
    lowest = FIRST + crc32(str(home).encode()) % RANGE
    others = {port for name, of_part in ports.items() if name != part for port in of_part}
    return free_ports(count, lowest=lowest, wanted=ports.get(part, ()), without=others)


def _ports(address: Address) -> tuple[int, ...]:
    """Return the ports of a part's addresses, in their order; none if one of the addresses has no valid port."""
    try:
        found = [urlsplit(text if "://" in text else f"//{text}").port for text in address.values()]
    except ValueError:
        return ()
    return tuple(port for port in found if port) if all(found) else ()


HOST = "127.0.0.1"
LAST_PORT = 65_535


@contextmanager
def free_ports(
    count: int, *, lowest: int | None = None, wanted: Sequence[int] = (), without: Collection[int] = ()
) -> Iterator[tuple[int, ...]]:
    """Choose free ports of 127.0.0.1, from `lowest` on if given, and reserve them inside the `with` block.

    Each port of `wanted` is used in its place if no other process uses it; those of `without` are never used.

    A released port can be taken by any outgoing connection before the server starts. So each port stays bound, with
    SO_REUSEADDR and without listening: Linux lets only a server that sets the same option (as Java and Go do) bind it
    too. Other systems do not, so there the ports are released at once.
    """
    with ExitStack() as held:
        candidates = iter([0] * count if lowest is None else range(lowest, LAST_PORT + 1))
        ports: list[int] = []
        while len(ports) < count:
            place = len(ports)
            if place < len(wanted) and _is_bound(held.enter_context(socket.socket()), wanted[place], is_known=True):
                ports.append(wanted[place])
                continue
            for candidate in candidates:
                each = held.enter_context(socket.socket())
                if candidate not in without and candidate not in wanted and _is_bound(each, candidate):
                    ports.append(each.getsockname()[1])
                    break
            else:
                raise LocalPartFailed(f"no port from {lowest} on is free", where=HOST)
        if sys.platform != "linux":
            held.close()
        yield tuple(ports)


def _is_bound(each: socket.socket, port: int, *, is_known: bool = False) -> bool:
    """Bind a socket to a port, and return whether that worked.

    Connections of a server that has ended hold its port for a minute (TIME_WAIT). If the port `is_known` as that of such a
    server, they do not count: with SO_REUSEADDR only a server that listens does.
    """
    if is_known:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        each.bind((HOST, port))
    except OSError:
        return False
    each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return True
