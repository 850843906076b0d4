"""Free ports, kept from everyone else until the server they are for has taken them."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from frazil.errors import LocalPartFailed

HOST = "127.0.0.1"
LAST_PORT = 65_535


@contextmanager
def free_ports(count: int, *, lowest: int | None = None) -> Iterator[tuple[int, ...]]:
    """Choose free ports of 127.0.0.1, from a lowest one on if that matters, and hold them inside the `with` block.

    A port that is chosen and let go can be taken by any outgoing connection before the server is up. So each is kept
    bound, with SO_REUSEADDR and without listening: Linux lets a server that sets the same option (Java's and Go's do)
    bind beside us, and nobody else. Other systems don't, and there the ports are let go at once.
    """
    with ExitStack() as held:
        candidates = iter([0] * count if lowest is None else range(lowest, LAST_PORT + 1))
        ports: list[int] = []
        while len(ports) < count:
            candidate = next(candidates, None)
            if candidate is None:
                raise LocalPartFailed(f"no port from {lowest} on is free", where=HOST)
            each = held.enter_context(socket.socket())
            try:
                each.bind((HOST, candidate))
            except OSError:
                continue
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            ports.append(each.getsockname()[1])
        if sys.platform != "linux":
            held.close()
        yield tuple(ports)
