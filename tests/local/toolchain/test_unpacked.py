from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from frazil.local.toolchain.jars import unpacked


def test_several_at_once_unpack_once(tmp_path: Path) -> None:
    calls: list[Path] = []

    def unpack(folder: Path) -> None:
        calls.append(folder)
        (folder / "bin").mkdir()
        (folder / "bin" / "program").write_text("run")

    with ThreadPoolExecutor(max_workers=4) as pool:
        folder = tmp_path / "cache" / "program-1.0"
        found = [each.result() for each in [pool.submit(unpacked, folder, "bin/program", unpack) for _ in range(4)]]
    assert set(found) == {folder / "bin" / "program"}
    assert found[0].read_text() == "run"
    assert len(calls) == 1


def test_a_folder_without_its_program_is_unpacked_again(tmp_path: Path) -> None:
    folder = tmp_path / "program-1.0"
    folder.mkdir()
    (folder / "left over").touch()
    assert unpacked(folder, "program", lambda new: (new / "program").touch()).is_file()
    assert [file.name for file in folder.iterdir()] == ["program"]


def test_a_failed_unpacking_leaves_no_folder(tmp_path: Path) -> None:
    def unpack(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        unpacked(tmp_path / "program-1.0", "program", unpack)
    assert [file.name for file in tmp_path.iterdir()] == [".lock"]
