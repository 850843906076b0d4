"""The entry points of a release: they look at what they were built for before they look at anything else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from frazil.release.archives import write_zip
from frazil.release.manifest import Role
from tests.support import small_release
from tests.support.variants import first_short

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(scope="module")
def package(root: Path, own_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("entry")
    release = small_release.built(root, own_wheel, folder, folder / "out")
    package = folder / "out" / release.the(Role.PACKAGE).name
    write_zip(package, made_for(PYTHON, package))
    return package


def made_for(python: str, package: Path) -> dict[str, bytes]:
    """Return the entries of a package as it would be for that Python."""
    with zipfile.ZipFile(package) as archive:
        entries = {entry: archive.read(entry) for entry in archive.namelist()}
    expected = json.loads(entries["frazil/expected.json"])
    expected["runtime"]["python"] = python
    return {**entries, "frazil/expected.json": json.dumps(expected).encode()}


def ran(name: str, package: Path, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    # The copy in `folder`: beside the checkout's own there is another `frazil`, which a script sees first.
    arguments = ["--document", "not-there.json", "--environment", "not-there.json", "--once", *more]
    return subprocess.run(
        [sys.executable, name, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", ["ingest.py", "maintain.py"])
def test_a_release_for_another_python_ends_at_once_with_its_reason(package: Path, tmp_path: Path, name: str) -> None:
    write_zip(tmp_path / "other.zip", made_for("3.9", package))
    (tmp_path / name).write_bytes((package.parent / name).read_bytes())
    ended = ran(name, tmp_path / "other.zip", tmp_path)
    assert ended.returncode == 1
    assert f"error: start: this is Python {PYTHON}, the release's packages are for 3.9" in ended.stderr


@pytest.mark.long
@pytest.mark.parametrize("prefix", first_short(["../x", "Orders", "a/b", "a b"]))
def test_a_runs_name_that_could_not_be_part_of_a_files_name_is_refused(
    package: Path, tmp_path: Path, prefix: str
) -> None:
    (tmp_path / "ingest.py").write_bytes((package.parent / "ingest.py").read_bytes())
    ended = ran("ingest.py", package, tmp_path, "--run", prefix)
    assert ended.returncode == 2
    assert "--run: write a-z, 0-9 and -" in ended.stderr


@pytest.mark.long
@pytest.mark.parametrize("name", ["ingest.py", "maintain.py"])
def test_a_document_that_is_not_there_is_named(package: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes((package.parent / name).read_bytes())
    ended = ran(name, package, tmp_path)
    assert ended.returncode == 2
    assert "error: not-there.json: it cannot be read (No such file or directory)" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    first_short(
        [
            ("ingest.py", ("--setting", "spark.x"), "--setting: 'spark.x' is not KEY=VALUE"),
            ("maintain.py", ("--setting", "=1"), "--setting: '=1' is not KEY=VALUE"),
            ("ingest.py", ("--every-seconds", "0"), "--every-seconds: '0' is not a number above zero"),
            ("ingest.py", ("--every-seconds", "nan"), "--every-seconds: 'nan' is not a number above zero"),
            ("maintain.py", ("--grace-hours", "-1"), "--grace-hours: '-1' is not a number from zero on"),
            ("maintain.py", ("--orphan-days", "inf"), "--orphan-days: 'inf' is not a number from zero on"),
        ],
        short=2,
    ),
)
def test_a_wrong_argument_is_told_before_anything_begins(
    package: Path, tmp_path: Path, name: str, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / name).write_bytes((package.parent / name).read_bytes())
    ended = ran(name, package, tmp_path, *arguments)
    assert ended.returncode == 2
    assert said in ended.stderr
