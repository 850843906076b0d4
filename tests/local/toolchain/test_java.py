from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from frazil.errors import JavaUnsuitable
from frazil.local.toolchain.java import java, version_text


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    java.cache_clear()
    yield
    java.cache_clear()


@pytest.fixture
def java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """A JAVA_HOME whose `java` tells this about itself."""

    def made(told: str) -> Path:
        program = tmp_path / "bin" / "java"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{told}\nEND\n")
        program.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        return program

    return made


@pytest.mark.parametrize("before", ["", "Picked up JAVA_TOOL_OPTIONS: -Dx=y\n"])
@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_java_17_and_newer_is_taken(java_home: Callable[[str], Path], before: str, version: str) -> None:
    assert java_home(f'{before}openjdk version "{version}" 2025-04-15') == java()


@pytest.mark.parametrize(("version", "told"), [("11.0.2", "11"), ("1.8.0_402", "8")])
def test_an_older_java_is_refused(java_home: Callable[[str], Path], version: str, told: str) -> None:
    java_home(f'openjdk version "{version}"')
    with pytest.raises(JavaUnsuitable, match=rf"it is Java {told}\. Set JAVA_HOME to a JDK 17 or 21"):
        java()


def test_a_program_that_is_no_java_is_refused(java_home: Callable[[str], Path]) -> None:
    java_home("hello")
    with pytest.raises(JavaUnsuitable, match="it prints no version"):
        java()


def test_a_java_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaUnsuitable, match=f"JAVA_HOME={tmp_path}: Java is not installed"):
        java()


def test_no_java_at_all_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaUnsuitable, match="PATH: Java is not installed"):
        java()


def test_options_in_variables_are_no_part_of_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = version_text.__wrapped__(java())
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-Dx=y")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dx=z")
    assert version_text.__wrapped__(java()) == plain
