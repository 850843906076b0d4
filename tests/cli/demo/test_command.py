"""The demo's last page: what it says to look at next."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from frazil.cli.demo.command import ELSEWHERE, NEXT, next_steps, until_interrupted


def test_without_the_command_the_first_step_puts_it_on_the_path(folder: Path) -> None:
    python = folder / ".venv" / "bin" / "python"
    assert next_steps("/usr/bin/frazil", python) == ELSEWHERE
    assert {words.split(" --pipelines ")[1] for words, _ in ELSEWHERE} == {".frazil/demo/pipelines.json"}
    (folder / "stacks").mkdir()
    (folder / "stacks" / "pipelines.py").touch()  # a checkout
    assert next_steps("/usr/bin/frazil", python) == NEXT
    assert next_steps(None, python) == (("source .venv/bin/activate", "puts frazil on the PATH"), *NEXT)
    assert next_steps(None, Path("/elsewhere/bin/python"))[0][0] == "source /elsewhere/bin/activate"


def test_ctrl_c_ends_the_page_though_spark_left_its_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGINT, lambda *_: pytest.fail("the handler of Spark ran"))
    monkeypatch.setattr(threading.Event, "wait", lambda self: signal.raise_signal(signal.SIGINT))
    try:
        until_interrupted()
    finally:
        signal.signal(signal.SIGINT, before)
