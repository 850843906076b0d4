import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from frazil.errors import LocalPartFailed
from frazil.local.process import Process, await_ready, is_alive, noted, start, stop

WITH_A_CHILD = "sleep 1000 & echo child $!; wait"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A `.frazil` folder whose processes end with the test."""
    yield tmp_path
    for process in noted(tmp_path):
        stop(process, seconds=0.2)


def shell(script: str, home: Path, name: str = "server") -> Process:
    return start(name, ["/bin/sh", "-c", script], home=home)


def says(process: Process, word: str) -> None:
    await_ready(process, lambda: word in process.log.read_text(), seconds=10)


def child_of(process: Process) -> psutil.Process:
    says(process, "child")
    return psutil.Process(int(process.log.read_text().split("child ")[1].split()[0]))


def runs(process: psutil.Process) -> bool:
    """An orphan that has ended may still be listed, until the system's first process asks for it."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def group(leader: int) -> list[int]:
    """The processes of a group, as the system tells them."""
    found = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError):
            if os.getpgid(process.pid) == leader and runs(process):
                found.append(process.pid)
    return found


def test_a_server_that_ends_early_fails_at_once_and_shows_the_end_of_its_log(home: Path) -> None:
    process = shell("seq 1 100; echo the port is taken >&2; exit 3", home)
    with pytest.raises(LocalPartFailed, match=r"server ended before it was ready \(status 3\)") as failure:
        await_ready(process, lambda: False, seconds=60)
    assert str(failure.value).endswith("99\n100\nthe port is taken")
    assert "\n80\n" not in str(failure.value)


def test_a_server_that_is_not_ready_in_time_is_stopped(home: Path) -> None:
    process = shell("echo thinking; exec sleep 1000", home)
    says(process, "thinking")
    with pytest.raises(LocalPartFailed, match=r"server was not ready after 0\.1 s.*\n.*thinking"):
        await_ready(process, lambda: False, seconds=0.1)
    assert not is_alive(process)


def test_a_program_that_does_not_exist_is_said(home: Path) -> None:
    with pytest.raises(LocalPartFailed, match="/no/such/server: server could not be started"):
        start("server", ["/no/such/server"], home=home)


def test_stop_leaves_no_process_of_the_group(home: Path) -> None:
    process = shell(WITH_A_CHILD, home)
    child = child_of(process)
    stop(process)
    assert group(process.pid) == []
    assert not runs(child)


def test_a_child_that_outlived_its_server_is_stopped_too(home: Path) -> None:
    process = shell(WITH_A_CHILD, home)
    child = child_of(process)
    os.kill(process.pid, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(process.pid)], timeout=10)
    stop(process)
    assert not runs(child)


def test_a_server_that_does_not_listen_to_requests_is_ended_by_force(home: Path) -> None:
    process = shell("trap '' TERM; echo deaf; while :; do sleep 1000; done", home)
    says(process, "deaf")
    stop(process, seconds=0.2)
    assert not psutil.pid_exists(process.pid)


def test_another_process_with_the_same_pid_is_left_alone(home: Path) -> None:
    stranger = shell("exec sleep 1000", home, name="stranger")
    stop(replace(stranger, name="server", started="1"))
    assert is_alive(stranger)


def test_a_process_is_noted_until_it_is_stopped(home: Path) -> None:
    process = shell("exec sleep 1000", home)
    assert noted(home) == [process]
    stop(process)
    assert noted(home) == []
    stop(process)


def test_a_note_that_was_written_by_halves_is_dropped(home: Path) -> None:
    (home / "run").mkdir()
    (home / "run" / "server.json").write_text('{"pid": 1')
    assert noted(home) == []
    assert list((home / "run").iterdir()) == []


def test_a_server_works_in_its_own_folder_session_and_environment_and_reads_nothing(home: Path) -> None:
    script = "pwd; cat; echo end of input; echo is $COLOUR; exec sleep 1000"
    process = start("server", ["/bin/sh", "-c", script], home=home, environment={"COLOUR": "blue"})
    says(process, f"{home}/server\nend of input\nis blue")
    assert os.getpgid(process.pid) == process.pid
    assert os.getsid(process.pid) == process.pid


def test_a_server_is_asked_to_end_by_its_own_signal(home: Path) -> None:
    script = "trap 'echo interrupted; exit 0' INT; trap '' TERM; echo ready; while :; do sleep 0.05; done"
    process = start("server", ["/bin/sh", "-c", script], home=home, stop_signal="SIGINT")
    says(process, "ready")
    assert noted(home) == [process]
    stop(noted(home)[0], seconds=10)
    assert "interrupted" in process.log.read_text()
