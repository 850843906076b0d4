"""A local server as a process that outlives the command that starts it and that any later command can stop.

A process is identified by its pid *and* its start time, because pids are reused. It leads its own process group, so that
stopping it also stops its children.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from frazil.errors import LocalPartFailed
from frazil.errors.missing_package import missing_package

_WAIT_SECONDS = 0.05
_KILLED_WITHIN_SECONDS = 5.0
_MISSING = re.compile(r"^ModuleNotFoundError: No module named '([\w.]+)'", re.MULTILINE)

_children: dict[int, subprocess.Popen[bytes]] = {}
"""The children of this process: an ended child stays in the table of processes until its parent waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that was started, and the folder that records it."""

    name: str
    pid: int
    started: str
    """The start time as the system reports it. With the pid, it identifies a process uniquely."""
    home: Path
    """The `.frazil` folder that the process belongs to."""
    stop_signal: str = "SIGTERM"
    """The signal that asks it to end."""

    @property
    def log(self) -> Path:
        """The file of its standard output and error."""
        return log_file(self.home, self.name)


def start(
    name: str,
    arguments: Sequence[str | Path],
    *,
    home: Path,
    environment: Mapping[str, str] | None = None,
    stop_signal: str = "SIGTERM",
) -> Process:
    """Start a server in its own session, with empty input, and record the process.

    Its working folder is `home/name`, which holds its data. `environment` is added to that of this process. `stop_signal`
    is what `stop` sends first. The log is truncated. Raises `LocalPartFailed` if the program cannot be started.
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
    return note(name, child, home=home, stop_signal=stop_signal)


def note(name: str, child: subprocess.Popen[bytes], *, home: Path, stop_signal: str = "SIGTERM") -> Process:
    """Record a process that was just started in a session of its own, so that `noted` returns it."""
    _children[child.pid] = child
    process = Process(name=name, pid=child.pid, started=_start_time(child.pid), home=home, stop_signal=stop_signal)
    written = _note(home, name)
    written.parent.mkdir(parents=True, exist_ok=True)
    written.write_text(json.dumps({"pid": process.pid, "started": process.started, "stop_signal": stop_signal}))
    return process


def noted(home: Path) -> list[Process]:
    """Return the processes that were started for a `.frazil` folder and not stopped since, running or not."""
    found = []
    for file in sorted((home / "run").glob("*.json")):
        try:
            facts = json.loads(file.read_bytes())
            one = Process(name=file.stem, pid=int(facts["pid"]), started=str(facts["started"]), home=home)
            found.append(replace(one, stop_signal=str(facts.get("stop_signal", one.stop_signal))))
        except (ValueError, KeyError):  # half written, by a process that was killed
            file.unlink(missing_ok=True)
    return found


def log_file(home: Path, name: str) -> Path:
    """Return the log file of a server, and create its folder."""
    log = home / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    return log


def properties_file(file: Path, settings: Mapping[str, object]) -> Path:
    """Write the settings of a Java server into a file, and return it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return file


def _note(home: Path, name: str) -> Path:
    return home / "run" / f"{name}.json"


def await_ready(process: Process, is_ready: Callable[[], bool], *, seconds: float) -> None:
    """Poll a server until it is ready.

    If the process ends or the time is over, stops the process and raises `LocalPartFailed` with the end of the log.
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
    module = _MISSING.search(tail(process.log))
    if module and (missing := missing_package(module[1])):
        raise missing
    raise LocalPartFailed(
        f"{process.name} ended before it was ready{_status(process)}. The end of its log:\n{tail(process.log)}",
        where=str(process.log),
    )


def answers(url: str) -> bool:
    """Return whether a local server answers a request with 200."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - a local address
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False


def stop(process: Process, *, seconds: float = 10) -> None:
    """Ask the process group to end, wait, and kill it after `seconds`. Idempotent.

    Raises `LocalPartFailed` if a process of the group still runs after that.
    """
    if _is_own_group(process) and not (
        _ended(process, signal.Signals[process.stop_signal], seconds)
        or _ended(process, signal.SIGKILL, _KILLED_WITHIN_SECONDS)
    ):
        raise LocalPartFailed(f"{process.name} (pid {process.pid}) did not end", do=f"End it: kill -9 -{process.pid}")
    _note(process.home, process.name).unlink(missing_ok=True)


def _ended(process: Process, request: signal.Signals, seconds: float) -> bool:
    """Send the group a signal. Return whether all its processes end within the time."""
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
    """Return whether this process runs, and not another one that has its pid now."""
    if process.started and _start_time(process.pid) == process.started:
        return True
    if process.pid in _children:
        _children[process.pid].poll()
    return False


def tail(log: Path, lines: int = 20) -> str:
    """Return the last lines of a log; empty if it does not exist."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return ""


def _status(process: Process) -> str:
    """Return the exit status that the parent received, or minus the signal; empty if unknown."""
    child = _children.get(process.pid)
    return "" if child is None or child.returncode is None else f" (status {child.returncode})"


def _is_own_group(process: Process) -> bool:
    """Return whether the group with this number is the one that was started, and not a later one with the same number.

    It is while its leader runs. After that, only the leader's parent knows: the number is not reused while the group has
    a member, and a group without members needs no stop.
    """
    return is_alive(process) or (process.pid in _children and not _start_time(process.pid))


def _start_time(pid: int) -> str:
    """Return when the process with this pid started, in the system's format; empty if it does not run."""
    if sys.platform == "linux":
        fields = _stat(pid)
        return fields[19] if _runs(fields) else ""
    listed = subprocess.run(["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = listed.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else started.strip()


def _members(group: int) -> list[int]:
    """Return the running processes of a group."""
    if sys.platform == "linux":
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        return [pid for pid in pids if _runs(fields := _stat(pid)) and fields[2] == str(group)]
    listed = subprocess.run(["ps", "-A", "-o", "pid=,pgid=,state="], capture_output=True, text=True, check=False)
    rows = [row.split() for row in listed.stdout.splitlines()]
    return [int(pid) for pid, pgid, state in rows if pgid == str(group) and not state.startswith("Z")]


def _runs(fields: list[str]) -> bool:
    """Return whether a process runs, from its fields. An ending process is a zombie before its last thread has ended."""
    return bool(fields) and (fields[0] not in ("Z", "X") or int(fields[17]) > 1)


def _stat(pid: int) -> list[str]:
    """Return the fields of `/proc/PID/stat` from the state on (proc(5)). The name before may contain blanks and brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
