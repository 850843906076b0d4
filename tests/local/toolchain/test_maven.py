from pathlib import Path

import pytest

from frazil.errors import JarsUnavailable
from frazil.local.toolchain.maven import Artifact, fetch


def artifact(version: str) -> Artifact:
    return Artifact(
        group="org.jspecify",
        name="jspecify",
        version=version,
        type="jar",
        sha256="",
        licence="Apache-2.0",
        purposes=("kafka",),
    )


def test_a_classifier_is_part_of_the_file_name() -> None:
    all_of_it = Artifact(
        group="io.example",
        name="app",
        version="2.0",
        type="tar.gz",
        sha256="",
        licence="Apache-2.0",
        purposes=("registry",),
        classifier="all",
    )
    assert all_of_it.path == "io.example/app-2.0-all.tar.gz"
    assert str(all_of_it) == "io.example:app:2.0:all"


@pytest.mark.long
def test_ivy_fetches_exactly_what_is_named(tmp_path: Path) -> None:
    (file,) = fetch([artifact("1.0.0")], tmp_path)
    assert file.read_bytes()[:2] == b"PK"
    assert [found.name for found in (tmp_path / "retrieved").rglob("*.jar")] == ["jspecify-1.0.0.jar"]


@pytest.mark.long
def test_what_cannot_be_had_is_said(tmp_path: Path) -> None:
    with pytest.raises(JarsUnavailable, match=r"1 of 1 jars could not be fetched: org\.jspecify:jspecify:0\.0\.0-none"):
        fetch([artifact("0.0.0-none")], tmp_path)
