"""The local AWS with simulated job runs: `python -m tests.standin.aws.instant_emr PORT MINUTE` (the seconds that a minute takes).

A run lasts `standin:minutes` of its tags (5), a streaming one has no end; `standin:outcome` is its result. It ignores
SIGTERM: only the end of its grace period ends it.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from frazil.local.ports import HOST, free_ports
from frazil.local.process import await_ready, start, stop
from tests.standin.aws.job_run import JobRun, Surroundings
from tests.standin.aws.server import serve

STEP_SECONDS = 60.0


class PretendedWork:
    details = "standin failed"
    is_begun = True

    def __init__(self, run: JobRun, clock: Callable[[], float]) -> None:
        minutes, outcome = run.tags.get("standin:minutes"), run.tags.get("standin:outcome")
        is_endless = run.is_streaming and minutes is None and outcome is None
        self._ends = float("inf") if is_endless else clock() + 2 * STEP_SECONDS + float(minutes or 5) * 60
        self._code = 0 if outcome in (None, "SUCCESS") else 1
        self._is_killed = False
        self._clock = clock

    @property
    def exit_code(self) -> int | None:
        if self._is_killed:
            return -9
        return self._code if self._clock() >= self._ends else None

    def terminate(self) -> None:
        pass

    def kill(self) -> None:
        self._is_killed = True


def surroundings(clock: Callable[[], float]) -> Surroundings:
    return Surroundings(
        clock=clock,
        today=lambda: datetime.now(UTC),
        begin=lambda run: PretendedWork(run, clock),
        step_seconds=STEP_SECONDS,
    )


@contextmanager
def pretended_aws(root: Path, home: Path, *, minute_seconds: float) -> Iterator[str]:
    """Start such a server in a process of its own. Yields its address."""
    with free_ports(1) as (port,):
        command = [sys.executable, "-m", "tests.standin.aws.instant_emr", str(port), str(minute_seconds)]
        server = start("emr", command, home=home, environment={"PYTHONPATH": str(root)})
        try:
            await_ready(server, lambda: _answers(port), seconds=60)
            yield f"http://{HOST}:{port}"
        finally:
            stop(server)


def _answers(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex((HOST, port)) == 0


if __name__ == "__main__":
    port, minute = int(sys.argv[1]), float(sys.argv[2])
    serve(port, surroundings(lambda: time.monotonic() * 60 / minute), Path.cwd())
