"""The archive of Spark's classes: used where it is there, and for the Java and the packages that it was made of."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from frazil.local import shared_classes


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment without an archive."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


def test_without_an_archive_no_option_is_given(elsewhere: Path) -> None:
    assert shared_classes.java_options() == ""


def test_the_archive_of_this_environment_is_named(elsewhere: Path) -> None:
    there = shared_classes.archive()
    assert there.is_relative_to(elsewhere)
    there.parent.mkdir(parents=True)
    there.write_bytes(b"")
    assert f"-XX:SharedArchiveFile={there}" in shared_classes.java_options().split()


def test_another_java_has_another_archive(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = shared_classes.archive()
    monkeypatch.setattr(shared_classes, "told_version", lambda program: 'openjdk version "21.0.1"')
    assert shared_classes.archive() != before


def test_a_java_that_makes_none_leaves_nothing(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_classes, "_PRACTICE", "raise SystemExit(1)")
    assert shared_classes.make() is None
    assert list(shared_classes.archive().parent.iterdir()) == []


@pytest.mark.spark
def test_the_session_of_the_tests_maps_it(spark: SparkSession) -> None:
    if not shared_classes.archive().is_file():
        pytest.skip("`make setup` found that this Java makes no archive")
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    assert str(shared_classes.archive()) in Path(f"/proc/{pid}/maps").read_text()
