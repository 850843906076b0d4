"""The pure parts of PostgreSQL's start. `test_change_data_parts.py` starts it."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import pytest

from frazil.errors import LocalPartFailed
from frazil.local import postgres as module


def test_it_runs_on_linux_as_any_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert module.why_postgres_cannot_run() is None


def test_another_platform_is_refused_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "FreeBSD")
    monkeypatch.setattr(platform, "machine", lambda: "amd64")
    with pytest.raises(LocalPartFailed, match="FreeBSD amd64.*use a server of your own"):
        module.start_postgres(tmp_path)
    assert "FreeBSD amd64" in str(module.why_postgres_cannot_run())


def test_another_user_than_root_starts_it_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert module._as_other_user([Path("bin/postgres"), "-D", Path("data")]) == ["bin/postgres", "-D", "data"]


def test_root_without_setpriv_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(
        LocalPartFailed, match="PostgreSQL does not run as root.*Run as another user, or install setpriv"
    ):
        module._as_other_user(["postgres"])
    assert "as root" in str(module.why_postgres_cannot_run())


def test_a_failed_initialization_is_repeated_by_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder `data` exists only after all steps."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, code in (("initdb", 0), ("postgres", 3)):
        program = programs / name
        program.write_text(f'#!/bin/sh\nmkdir -p unfinished\necho "{name} ran"\nexit {code}\n')
        program.chmod(0o755)
    with pytest.raises(LocalPartFailed, match="could not be initialized:\ninitdb ran\npostgres ran"):
        module._initialize(tmp_path / "postgres", programs, tmp_path / "log")
    assert not (tmp_path / "postgres" / "data").exists()
    (programs / "postgres").write_text("#!/bin/sh\ncat >unfinished/statements\n")
    module._initialize(tmp_path / "postgres", programs, tmp_path / "log")
    assert "SUPERUSER" not in (tmp_path / "postgres" / "data" / "statements").read_text()
    assert (tmp_path / "postgres" / "data" / "pg_hba.conf").read_text() == module._HOST_RULES
