"""The archive of the jobs' packages is compressed once for the same wheels, and never used if it was damaged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from frazil.release import build as environment_archive
from frazil.release import wheels
from frazil.release.build import write_environment
from tests.support.small_release import wheel

NAME = "environment-x86_64.tar.gz"


class Packing:
    """A build's packing of some wheels, which counts how often it compresses."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kept, self._out, self.times = folder / "kept", folder / NAME, 0
        pack = environment_archive.write_tar_gz

        def counted(target: Path, entries: Mapping[str, bytes]) -> None:
            self.times += 1
            pack(target, entries)

        monkeypatch.setattr(environment_archive, "write_tar_gz", counted)

    def packed(self, *packages: Path) -> bytes:
        self._out.unlink(missing_ok=True)
        write_environment(self._out, wheels.merged(packages), packages=packages, kept=self.kept)
        return self._out.read_bytes()


@pytest.fixture
def packing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packing:
    return Packing(tmp_path, monkeypatch)


def test_the_same_wheels_are_compressed_once(packing: Packing, tmp_path: Path) -> None:
    apple = wheel(tmp_path, "apple", {"apple.py": b"1"})
    first = packing.packed(apple)
    assert packing.packed(apple) == first
    assert packing.times == 1


def test_another_wheel_replaces_what_was_kept(packing: Packing, tmp_path: Path) -> None:
    first = packing.packed(wheel(tmp_path, "apple", {"apple.py": b"1"}))
    assert packing.packed(wheel(tmp_path, "apple", {"apple.py": b"2"})) != first
    assert packing.times == 2
    assert len(list(packing.kept.iterdir())) == 1


def test_a_damaged_file_is_compressed_again(packing: Packing, tmp_path: Path) -> None:
    apple = wheel(tmp_path, "apple", {"apple.py": b"1"})
    first = packing.packed(apple)
    (kept,) = packing.kept.iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    assert packing.packed(apple) == first
    assert kept.read_bytes() == first
    assert packing.times == 2


def test_code_that_packs_otherwise_compresses_again(
    packing: Packing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apple = wheel(tmp_path, "apple", {"apple.py": b"1"})
    packing.packed(apple)
    changed = tmp_path / "archives.py"
    changed.write_text("_LEVEL = 9\n")
    monkeypatch.setattr(environment_archive.archives, "__file__", str(changed))
    packing.packed(apple)
    assert packing.times == 2
