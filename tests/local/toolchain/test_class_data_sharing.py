"""The archive of Spark's classes: used where it is there, and for the Java and the packages that it was made of."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from frazil.local.toolchain import class_data_sharing


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment without an archive."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


def test_without_an_archive_no_option_is_given(elsewhere: Path) -> None:
    assert class_data_sharing.java_options() == ""


def test_the_archive_of_this_environment_is_named(elsewhere: Path) -> None:
    there = class_data_sharing.archive()
    assert there.is_relative_to(elsewhere)
    there.parent.mkdir(parents=True)
    there.write_bytes(b"")
    assert f"-XX:SharedArchiveFile={there}" in class_data_sharing.java_options().split()


def test_another_java_has_another_archive(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = class_data_sharing.archive()
    monkeypatch.setattr(class_data_sharing, "version_text", lambda program: 'openjdk version "21.0.1"')
    assert class_data_sharing.archive() != before


def test_a_java_that_makes_none_leaves_nothing(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_data_sharing, "_PRACTICE", "no.such.module")
    assert class_data_sharing.make() is None
    assert list(class_data_sharing.archive().parent.iterdir()) == []


def test_a_step_that_takes_too_long_is_said_and_tried_again(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(class_data_sharing, "_PRACTICE", "http.server")
    monkeypatch.setattr(class_data_sharing, "LONGEST_SECONDS", 0)
    assert class_data_sharing.main() == class_data_sharing.TRY_AGAIN == 75
    assert "took longer than 0 s. Spark starts without one; `make setup` tries again" in capsys.readouterr().out
    assert list(class_data_sharing.archive().parent.iterdir()) == []


@pytest.mark.spark
def test_the_session_of_the_tests_maps_it(spark: SparkSession) -> None:
    if not class_data_sharing.archive().is_file():
        pytest.skip("`make setup` found that this Java makes no archive")
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    assert str(class_data_sharing.archive()) in Path(f"/proc/{pid}/maps").read_text()
