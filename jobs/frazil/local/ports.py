"""Free ports, reserved until their server listens on them."""

from __future__ import annotations

import socket
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from frazil.errors import LocalPartFailed

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
