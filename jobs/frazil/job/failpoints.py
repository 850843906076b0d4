"""Steps of a batch, or of upkeep, at which a test makes the driver die or wait. Inert unless a test sets them.

A setting is `step[@hit]=action`, several joined by `;`. `hit` counts from 1 and is 1 if omitted. Actions:
`kill` ends the driver at once, as `kill -9` does; `kill-jvm` ends Spark's JVM so; `fail` raises; `pause:PIPE` writes one byte
to the named pipe `PIPE.reached`, then waits until something is written to the named pipe `PIPE`.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable

from frazil.errors import FrazilError


class Failed(FrazilError):
    """A failpoint's action `fail`."""


class Failpoints:
    """The actions by step. `jvm_pid` returns the process id of Spark's JVM once there is one."""

    def __init__(self, settings: str, jvm_pid: Callable[[], int]) -> None:
        self._actions: dict[tuple[str, int], str] = {}
        self._hits: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._jvm_pid = jvm_pid
        for setting in filter(None, settings.split(";")):
            place, _, action = setting.partition("=")
            step, _, hit = place.partition("@")
            self._actions[step, int(hit or 1)] = action

    def __call__(self, step: str) -> None:
        """The driver has reached `step`."""
        with self._lock:
            self._hits[step] += 1
            action = self._actions.get((step, self._hits[step]), "")
        name, _, argument = action.partition(":")
        match name:
            case "":
                return
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "kill-jvm":
                os.kill(self._jvm_pid(), signal.SIGKILL)
            case "pause":
                with open(f"{argument}.reached", "wb") as reached:
                    reached.write(b".")
                with open(argument, "rb") as pipe:
                    pipe.read(1)
            case _:
                raise Failed(f"failpoint {step}")
