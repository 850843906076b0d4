"""A local server as a process of its own: it outlives the command that starts it, and can be stopped by anyone later.

A process is known by its pid *and* the time it started, because pids are used again. It leads its own process group,
so that stopping it stops whatever it has started.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from frazil.errors import LocalPartFailed

_WAIT_SECONDS = 0.05
_KILLED_WITHIN_SECONDS = 5.0

_children: dict[int, subprocess.Popen[bytes]] = {}
"""What this very process started: an ended child stays in the table of processes until its parent has asked for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that was started: which one, and where it is written down."""

    name: str
    pid: int
    started: str
    """When it started, as the system tells it; with the pid it names a process for good."""
    home: Path
    """The `.frazil` folder it belongs to."""

    @property
    def log(self) -> Path:
        """Its standard output and error."""
        return log_file(self.home, self.name)


def start(
    name: str, arguments: Sequence[str | Path], *, home: Path, environment: Mapping[str, str] | None = None
) -> Process:
    """Start a server in its own session, with nothing to read, and write down which process it is.

    It works in `home/name`, where its data is; `environment` is added to this process's own; the log is made anew.
    Raises `LocalPartFailed` when the program cannot be started.
    """
    folder, log = home / name, log_file(home, name)
    folder.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        try:
            child = subprocess.Popen(
                [str(argument) for argument in arguments],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        except OSError as problem:
            raise LocalPartFailed(f"{name} could not be started: {problem}", where=str(arguments[0])) from problem
    return note(name, child, home=home)


def note(name: str, child: subprocess.Popen[bytes], *, home: Path) -> Process:
    """Write down which process was just started, so that `noted` tells of it; it leads a session of its own."""
    _children[child.pid] = child
    process = Process(name=name, pid=child.pid, started=_start_time(child.pid), home=home)
    written = _note(home, name)
    written.parent.mkdir(parents=True, exist_ok=True)
    written.write_text(json.dumps({"pid": process.pid, "started": process.started}))
    return process


def noted(home: Path) -> list[Process]:
    """Every process that was started for a `.frazil` folder and not stopped since, whether it still runs or not."""
    found = []
    for file in sorted((home / "run").glob("*.json")):
        try:
            facts = json.loads(file.read_bytes())
            found.append(Process(name=file.stem, pid=int(facts["pid"]), started=str(facts["started"]), home=home))
        except (ValueError, KeyError):  # written by halves, by a process that was killed
            file.unlink(missing_ok=True)
    return found


def log_file(home: Path, name: str) -> Path:
    """Where a server of this name writes; the folder is there."""
    log = home / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    return log


def _note(home: Path, name: str) -> Path:
    return home / "run" / f"{name}.json"


def await_ready(process: Process, is_ready: Callable[[], bool], *, seconds: float) -> None:
    """Ask again and again, in short waits, until the server says that it is ready.

    Raises `LocalPartFailed` with the end of the log as soon as the process has ended, and when the time is over; the
    process is stopped then.
    """
    deadline = time.monotonic() + seconds
    while is_alive(process):
        if is_ready():
            return
        if time.monotonic() > deadline:
            stop(process)
            raise LocalPartFailed(
                f"{process.name} was not ready after {seconds:g} s. The end of its log:\n{tail(process.log)}",
                where=str(process.log),
            )
        time.sleep(_WAIT_SECONDS)
    stop(process)
    raise LocalPartFailed(
        f"{process.name} ended before it was ready{_status(process)}. The end of its log:\n{tail(process.log)}",
        where=str(process.log),
    )


def stop(process: Process, *, seconds: float = 10) -> None:
    """Ask the process group to end, wait, and end it by force after that time. Fine when it has ended already.

    Raises `LocalPartFailed` when something of it is still there after that.
    """
    if _is_group_ours(process) and not (
        _ended(process, signal.SIGTERM, seconds) or _ended(process, signal.SIGKILL, _KILLED_WITHIN_SECONDS)
    ):
        raise LocalPartFailed(f"{process.name} (pid {process.pid}) did not end", do=f"End it: kill -9 -{process.pid}")
    _note(process.home, process.name).unlink(missing_ok=True)


def _ended(process: Process, request: signal.Signals, seconds: float) -> bool:
    """Send the group a signal; whether nothing of it runs within the time."""
    try:
        os.killpg(process.pid, request)
    except ProcessLookupError:
        return True
    deadline = time.monotonic() + seconds
    while is_alive(process) or _members(process.pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(_WAIT_SECONDS)
    return True


def is_alive(process: Process) -> bool:
    """Whether this very process runs, and not another one that has its pid by now."""
    if process.started and _start_time(process.pid) == process.started:
        return True
    if process.pid in _children:
        _children[process.pid].poll()
    return False


def tail(log: Path, lines: int = 20) -> str:
    """The last lines of a log; empty when there is none."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return ""


def _status(process: Process) -> str:
    """What its parent was told when it ended: an exit status, or minus the signal that ended it."""
    child = _children.get(process.pid)
    return "" if child is None or child.returncode is None else f" (status {child.returncode})"


def _is_group_ours(process: Process) -> bool:
    """Whether the group with this number is the one that was started, and not one that has the number by now.

    Surely while its leader runs. When the leader has ended, only its own parent can tell: a number is not used again
    while the group has a member, and if it has none there is nothing to stop.
    """
    return is_alive(process) or (process.pid in _children and not _start_time(process.pid))


def _start_time(pid: int) -> str:
    """When the process with this pid started, as the system counts it; empty when there is none that runs."""
    if sys.platform == "linux":
        fields = _stat(pid)
        return fields[19] if _runs(fields) else ""
    told = subprocess.run(["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = told.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else started.strip()


def _members(group: int) -> list[int]:
    """The processes of a group that still run."""
    if sys.platform == "linux":
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        return [pid for pid in pids if _runs(fields := _stat(pid)) and fields[2] == str(group)]
    told = subprocess.run(["ps", "-A", "-o", "pid=,pgid=,state="], capture_output=True, text=True, check=False)
    rows = [row.split() for row in told.stdout.splitlines()]
    return [int(pid) for pid, pgid, state in rows if pgid == str(group) and not state.startswith("Z")]


def _runs(fields: list[str]) -> bool:
    """Whether a process runs, by its fields. One that is ending is a zombie before its last thread has ended."""
    return bool(fields) and (fields[0] not in ("Z", "X") or int(fields[17]) > 1)


def _stat(pid: int) -> list[str]:
    """Fields of `/proc/PID/stat` from the state on (proc(5)); the name before may hold blanks and brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
