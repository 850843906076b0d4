import os
from dataclasses import replace
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
    all_of_it = replace(artifact("2.0"), type="tar.gz", classifier="all")
    assert all_of_it.path == "org.jspecify/jspecify-2.0-all.tar.gz"
    assert str(all_of_it) == "org.jspecify:jspecify:2.0:all"


@pytest.mark.long
def test_ivy_fetches_exactly_what_is_named(tmp_path: Path) -> None:
    (file,) = fetch([artifact("1.0.0")], tmp_path, os.environ)
    assert file.read_bytes()[:2] == b"PK"
    assert [found.name for found in (tmp_path / "retrieved").rglob("*.jar")] == ["jspecify-1.0.0.jar"]


@pytest.mark.long
def test_what_cannot_be_had_is_said(tmp_path: Path) -> None:
    with pytest.raises(JarsUnavailable, match=r"1 of 1 jars could not be fetched: org\.jspecify:jspecify:0\.0\.0-none"):
        fetch([artifact("0.0.0-none")], tmp_path, os.environ)


def mirror(folder: Path, content: bytes) -> str:
    """Make a folder a Maven repository with one artifact, and return its address."""
    file = folder / "org" / "jspecify" / "jspecify" / "7.7" / "jspecify-7.7.jar"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    return folder.as_uri()


def test_a_mirror_is_asked_in_place_of_the_default_repository(tmp_path: Path) -> None:
    address = mirror(tmp_path / "a mirror", b"of the mirror")
    (tmp_path / "fetched").mkdir()
    (file,) = fetch([artifact("7.7")], tmp_path / "fetched", {"FRAZIL_MAVEN_MIRROR": address})
    assert file.read_bytes() == b"of the mirror"


def test_settings_of_ivy_come_before_a_mirror_and_an_absent_jar_names_them(tmp_path: Path) -> None:
    settings = tmp_path / "settings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="m"/><resolvers>'
        f'<ibiblio name="m" m2compatible="true" usepoms="false" root="{(tmp_path / "empty").as_uri()}/"/>'
        "</resolvers></ivysettings>"
    )
    variables = {"FRAZIL_IVY_SETTINGS": str(settings), "FRAZIL_MAVEN_MIRROR": mirror(tmp_path / "mirror", b"jar")}
    (tmp_path / "fetched").mkdir()
    with pytest.raises(JarsUnavailable) as refused:
        fetch([artifact("7.7")], tmp_path / "fetched", variables)
    text = str(refused.value)
    assert text.startswith(
        f"FRAZIL_IVY_SETTINGS={settings}: 1 of 1 jars could not be fetched: org.jspecify:jspecify:7.7"
    )
    assert "for a folder of jars FRAZIL_JARS" in text


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"FRAZIL_IVY_SETTINGS": "/nowhere/settings.xml"},
            "FRAZIL_IVY_SETTINGS=/nowhere/settings.xml: the file does not",
        ),
        ({"FRAZIL_MAVEN_MIRROR": "maven.example.org"}, "FRAZIL_MAVEN_MIRROR=maven.example.org: it is no address"),
        (
            {"FRAZIL_MAVEN_MIRROR": "https://u:pass@maven.example.org"},
            "FRAZIL_MAVEN_MIRROR: the address of the mirror has",
        ),
    ],
)
def test_settings_that_cannot_be_used_are_refused_before_a_fetch(
    variables: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(JarsUnavailable, match=message) as refused:
        fetch([artifact("7.7")], tmp_path, variables)
    assert "pass" not in str(refused.value)
