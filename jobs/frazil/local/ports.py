"""Free ports, reserved until their server listens on them."""

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
    """Choose free ports of 127.0.0.1, from `lowest` on if given, and reserve them inside the `with` block.

    A released port can be taken by any outgoing connection before the server starts. So each port stays bound, with
    SO_REUSEADDR and without listening: Linux lets only a server that sets the same option (as Java and Go do) bind it
    too. Other systems do not, so there the ports are released at once.
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
