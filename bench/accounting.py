"""CPU and memory of processes, from the kernel's accounting (`/proc/PID/stat`, `VmHWM`)."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU-seconds so far, by process, and the wall time."""

    wall: float
    cpu: dict[str, float]

    def since(self, before: Usage) -> Usage:
        """Return the usage since an earlier one."""
        return Usage(
            self.wall - before.wall,
            {name: round(used - before.cpu.get(name, 0.0), 2) for name, used in self.cpu.items()},
        )


class Meter:
    """A meter of this process (the driver's Python), its JVM, the JVM's Python workers and the broker.

    Where this process only asks the JVM for landings, `counts_driver` is false.
    """

    def __init__(self, broker_pid: int, *, counts_driver: bool = True) -> None:
        self.driver, self._counts_driver = psutil.Process(), counts_driver
        self.broker = psutil.Process(broker_pid)
        self._jvm: psutil.Process | None = None

    @property
    def jvm(self) -> psutil.Process:
        """Return the JVM that this process has started."""
        if self._jvm is None:
            (self._jvm,) = (child for child in self.driver.children() if child.name() == "java")
        return self._jvm

    def read(self) -> Usage:
        """Read the usage until now."""
        workers = self.jvm.children(recursive=True)
        cpu = {
            **({"python": _own(self.driver)} if self._counts_driver else {}),
            "jvm": _own(self.jvm),
            "workers": sum(_with_reaped(worker) for worker in workers),
            "broker": _own(self.broker),
        }
        return Usage(time.monotonic(), cpu)

    def since_start(self) -> Usage:
        """Read the usage since the start of the first process that counts, without the broker's."""
        used, first = self.read(), self.driver if self._counts_driver else self.jvm
        del used.cpu["broker"]
        return replace(used, wall=time.time() - first.create_time())

    def peak_rss_mb(self) -> dict[str, float]:
        """Return the peak of each process's resident memory, in MB."""
        return {"python": _peak(self.driver.pid), "jvm": _peak(self.jvm.pid)}


def without_broker(cpu: Mapping[str, float]) -> float:
    """Return the CPU-seconds of all processes of a contender."""
    return sum(seconds for name, seconds in cpu.items() if name != "broker")


def _own(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _with_reaped(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


def _peak(pid: int) -> float:
    line = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert line is not None
    return round(int(line[1]) / 1024, 1)
