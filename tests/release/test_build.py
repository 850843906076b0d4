"""A release is the same bytes each time, holds what jobs need and nothing of the machine that built it."""

from __future__ import annotations

import filecmp
import hashlib
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from frazil.errors import ReleaseIncomplete
from frazil.release.build import CLASSES
from frazil.release.manifest import MANIFEST, Release, Role, parse_manifest
from tests.support import small_release


@pytest.fixture(scope="module")
def folder(root: Path, own_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("build")
    small_release.built(root, own_wheel, made, made / "out")
    return made / "out"


@pytest.fixture(scope="module")
def release(folder: Path) -> Release:
    return parse_manifest((folder / MANIFEST).read_bytes())


@pytest.fixture(scope="module")
def package(folder: Path, release: Release) -> Path:
    return folder / release.the(Role.PACKAGE).name


def test_two_builds_are_the_same_bytes(root: Path, own_wheel: Path, folder: Path, tmp_path: Path) -> None:
    small_release.built(root, own_wheel, tmp_path, tmp_path / "again")
    names = sorted(file.name for file in folder.iterdir())
    assert sorted(file.name for file in (tmp_path / "again").iterdir()) == names
    _, differ, broken = filecmp.cmpfiles(folder, tmp_path / "again", names, shallow=False)
    assert (differ, broken) == ([], [])


def test_the_manifest_tells_every_file_with_its_hash(folder: Path, release: Release) -> None:
    assert {file.name for file in release.files} == {file.name for file in folder.iterdir()} - {MANIFEST}
    for file in release.files:
        data = (folder / file.name).read_bytes()
        assert (file.sha256, file.size_bytes) == (hashlib.sha256(data).hexdigest(), len(data))
        assert file.sha256 in file.key


def test_the_manifest_tells_where_it_is_from_and_what_it_needs(release: Release) -> None:
    assert (release.git_commit, release.is_dirty) == (small_release.COMMIT, False)
    assert (release.label, release.architecture) == ("emr-spark-8.1.0", "X86_64")
    assert (release.runtime.spark, release.runtime.iceberg, release.runtime.python) == ("4.1.1", "1.11.0", "3.11")
    assert release.runtime.classes == CLASSES
    assert release.the(Role.PACKAGE).name == f"frazil-{release.version}.zip"  # executors import no .whl
    assert {jar.name for jar in release.jars} == {
        "iceberg-spark-runtime-4.1_2.13-1.11.0.jar",
        "kafka-clients-3.9.1.jar",
    }


def test_the_package_has_every_room_but_those_of_the_command_line(root: Path, package: Path) -> None:
    names = zipfile.ZipFile(package).namelist()
    rooms = {name.split("/")[1] for name in names if name.startswith("frazil/") and name.count("/") > 1}
    here = {path.parent.name for path in (root / "jobs" / "frazil").glob("*/__init__.py")}
    assert rooms == here - {"local", "cli", "doctor", "inference", "page", "project", "smoke", "status"}
    assert not any("entry_points" in name or "__pycache__" in name for name in names)


def test_archives_tell_neither_times_nor_owners_nor_places(folder: Path, release: Release, package: Path) -> None:
    for entry in zipfile.ZipFile(package).infolist():
        assert (entry.date_time, entry.external_attr >> 16) == ((1980, 1, 1, 0, 0, 0), 0o100644)
    with tarfile.open(folder / release.the(Role.ENVIRONMENT).name) as environment:
        members = environment.getmembers()
    assert [member.name for member in members] == sorted(member.name for member in members)
    assert {(m.mtime, m.mode, m.uid, m.gid, m.uname, m.gname) for m in members} == {(0, 0o644, 0, 0, "", "")}
    assert not any(Path(member.name).is_absolute() for member in members)


def test_nothing_tells_the_folder_it_was_built_in(root: Path, folder: Path, release: Release, package: Path) -> None:
    places = {str(place).encode() for place in (root, folder, Path.home(), Path(sys.prefix)) if str(place) != "/"}
    with zipfile.ZipFile(package) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    contents |= {name: (folder / name).read_bytes() for name in (MANIFEST, release.the(Role.BILL).name)}
    for name, data in contents.items():
        assert not [place for place in places if place in data], name


def test_packages_are_flat_and_bring_no_scripts(folder: Path, release: Release) -> None:
    with tarfile.open(folder / release.the(Role.ENVIRONMENT).name) as environment:
        names = environment.getnames()
    assert {"apple/__init__.py", "pear.py"} < set(names)
    assert not [name for name in names if "script" in name]


def test_the_package_is_imported_from_the_zip_and_tells_its_version(
    package: Path, release: Release, tmp_path: Path
) -> None:
    code = (
        f"import sys; sys.path[:0] = [{str(package)!r}]\n"
        "from frazil.job import startup\nfrom frazil.release.manifest import expected\n"
        "from frazil.version import VERSION\n"
        "import frazil.declaration, frazil.schemas.avro.reader_schema, frazil.rollout.steps\n"
        "assert '.zip' in frazil.__file__\n"
        "startup.check_python(expected(), version=(3, 11))\n"
        "print(VERSION, expected().spark)"
    )
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.stdout.split() == [release.version, "4.1.1"], ended.stderr


@pytest.mark.long
def test_the_bill_of_materials_names_every_part_and_keeps_to_its_schema(folder: Path, release: Release) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    text = (folder / release.the(Role.BILL).name).read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    parts = {part["purl"]: part for part in json.loads(text)["components"]}
    assert set(parts) == {
        "pkg:pypi/apple@1.0",
        "pkg:pypi/boto3@1.0",
        "pkg:pypi/pear@1.0",
        "pkg:maven/org.x/kafka-clients@3.9.1",
        "pkg:maven/org.x/iceberg-spark-runtime-4.1_2.13@1.11.0",
    }
    assert parts["pkg:pypi/apple@1.0"]["licenses"] == [{"license": {"id": "MIT"}}]
    jar = next(file for file in release.files if file.name.startswith("kafka-clients"))
    assert parts["pkg:maven/org.x/kafka-clients@3.9.1"]["hashes"] == [{"alg": "SHA-256", "content": jar.sha256}]


def test_without_the_jar_of_the_labels_spark_there_is_no_release(root: Path, own_wheel: Path, tmp_path: Path) -> None:
    from frazil.release.build import build
    from frazil.release.emr_labels import LABELS
    from frazil.release.manifest import Architecture

    with pytest.raises(ReleaseIncomplete, match="iceberg-spark-runtime-4.1_2.13 is not locked"):
        build(
            small_release.checkout(root),
            tmp_path / "out",
            own_wheel=own_wheel,
            packages=[],
            jars=[small_release.jar(tmp_path, "iceberg-spark-runtime-3.5_2.12", "1.11.0")],
            label=LABELS[0],
            architecture=Architecture.X86_64,
        )
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_something_else_is_not_overwritten(root: Path, own_wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    with pytest.raises(ReleaseIncomplete, match="has other content"):
        small_release.built(root, own_wheel, tmp_path, tmp_path / "out")
    assert (tmp_path / "out" / "thesis.txt").exists()
