"""The ports of a project folder's services: the same at each start, so that settings that name an address stay right.

The addresses of the last start are in `addresses.json`. A service without one takes the first free port from a number on that
the folder's path gives, so two projects seldom want the same. That range is below those from which systems give ports to
outgoing connections.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from zlib import crc32

from frazil.local.ports import free_ports
from frazil.local.state_file import Address, write_document

FILE = "addresses.json"
VERSION = 1
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


@contextmanager
def kept_ports(home: Path, part: str, count: int = 1) -> Iterator[tuple[int, ...]]:
    """Reserve the ports of a part's last addresses inside the `with` block; another one for each that is in use now."""
    last = last_addresses(home)
    ports = {name: _ports(address) for name, address in last.items()}
    lowest = FIRST + crc32(str(home).encode()) % RANGE
    others = {port for name, of_part in ports.items() if name != part for port in of_part}
    with free_ports(count, lowest=lowest, wanted=ports.get(part, ()), without=others) as chosen:
        yield chosen


def last_addresses(home: Path) -> dict[str, Address]:
    """Return the addresses that each part had at its last start; none if the file is missing or damaged."""
    try:
        written = json.loads((home / FILE).read_bytes())
        parts = written["parts"] if written["version"] == VERSION else {}
        return {part: {name: str(text) for name, text in address.items()} for part, address in parts.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def keep_addresses(home: Path, addresses: Mapping[str, Address]) -> tuple[Moved, ...]:
    """Write the addresses of running parts for the next start, and return the parts that had another one."""
    last = last_addresses(home)
    write_document(home / FILE, {"version": VERSION, "parts": {**last, **addresses}})
    return tuple(Moved(part, last[part], now) for part, now in addresses.items() if last.get(part, now) != now)


def _ports(address: Address) -> tuple[int, ...]:
    """Return the ports of a part's addresses, in their order; none if one of the addresses has no valid port."""
    try:
        found = [urlsplit(text if "://" in text else f"//{text}").port for text in address.values()]
    except ValueError:
        return ()
    return tuple(port for port in found if port) if all(found) else ()
