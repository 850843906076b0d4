"""Progress of a fetch: a bar on a terminal, lines in a log."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from frazil.local.toolchain import fetch_progress
from frazil.local.toolchain.fetch_progress import shown
from frazil.local.toolchain.maven import Artifact


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def artifacts(*sizes: int) -> list[Artifact]:
    facts = {"group": "g", "version": "1", "type": "jar", "sha256": "", "licence": "MIT"}
    return [Artifact(name=f"a{n}", purposes=("x",), size_bytes=size, **facts) for n, size in enumerate(sizes)]


def test_a_log_has_two_lines_and_no_control_characters(tmp_path: Path) -> None:
    log = io.StringIO()
    with shown(artifacts(2_000_000, 500_000), tmp_path, log):
        assert log.getvalue() == "fetching 2 jars, 2.5 MB; they are kept for later runs\n"
    assert log.getvalue().splitlines()[1:] == ["fetched 2 jars in 0 s"]


def test_a_fetch_that_fails_is_not_reported_as_done(tmp_path: Path) -> None:
    log = io.StringIO()
    with pytest.raises(OSError, match="no network"), shown(artifacts(1, 1), tmp_path, log):
        raise OSError("no network")
    assert "fetched" not in log.getvalue()


def test_a_terminal_has_a_bar_of_the_bytes_that_arrived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    terminal = Terminal()
    with shown(artifacts(600_000, 400_000), tmp_path, terminal):
        pass
    assert "fetching 2 jars" in terminal.getvalue()
    assert "1.0/1.0 MB" in terminal.getvalue()


def test_what_arrived_is_never_more_than_the_locked_sizes(tmp_path: Path) -> None:
    (tmp_path / "org").mkdir()
    (tmp_path / "org" / "a.jar.part").write_bytes(b"x" * 70)
    (tmp_path / "ivy.properties").write_bytes(b"x" * 20)
    assert fetch_progress._arrived(tmp_path, 1000) == 90
    assert fetch_progress._arrived(tmp_path, 80) == 80
    assert fetch_progress._arrived(tmp_path, None) == 90
    assert fetch_progress._arrived(tmp_path / "absent", 80) == 0
