"""The addresses at which processes take connections."""

from __future__ import annotations

import psutil

from frazil.local.process import Process


def listening(process: Process) -> list[str]:
    """Return the addresses that a process and its children take connections at, TCP and UDP."""
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    sockets = [each for one in family for each in one.net_connections("inet")]
    return [each.laddr.ip for each in sockets if each.status == psutil.CONN_LISTEN or not each.raddr]
