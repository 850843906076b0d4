"""The packages are those of the lock, by hash, for the machine that runs them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from frazil.errors import ReleaseIncomplete
from frazil.release.manifest import Architecture
from frazil.release.packages import Package, download, locked_packages, matched, normal
from tests.support.small_release import wheel

LOCK = """# made by a tool
apple==1.0 \\
    --hash=sha256:{0} \\
    --hash=sha256:{1}
    # via frazil (pyproject.toml)
Big_Pear.x==2.1 \\
    --hash=sha256:{1}
"""
A, B = "a" * 64, "b" * 64


def test_a_lock_is_read_with_all_its_hashes() -> None:
    assert locked_packages(LOCK.format(A, B)) == (
        Package("apple", "1.0", frozenset({A, B})),
        Package("big-pear-x", "2.1", frozenset({B})),
    )


@pytest.mark.parametrize(
    "line", ["apple", "apple>=1.0", "apple==1.0", f'apple==1.0 ; python_version < "3" --hash=sha256:{A}']
)
def test_a_package_that_is_not_pinned_and_hashed_is_refused(line: str) -> None:
    with pytest.raises(ReleaseIncomplete, match="not a pinned, hashed package"):
        locked_packages(f"{line}\n")


def test_a_file_whose_hash_the_lock_lacks_is_no_match(tmp_path: Path) -> None:
    file = wheel(tmp_path, "apple", {})
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    assert matched([Package("apple", "1.0", frozenset({sha256}))], {file: sha256}) == {"apple": file}
    assert matched([Package("apple", "1.0", frozenset({A}))], {file: sha256}) == {}
    assert matched([Package("apple", "1.1", frozenset({sha256}))], {file: sha256}) == {}


def test_what_is_there_is_not_fetched_again_and_what_was_changed_is_not_believed(tmp_path: Path) -> None:
    file = wheel(tmp_path / "wheels", "apple", {})
    lock = tmp_path / "requirements.lock"
    lock.write_text(f"apple==1.0 \\\n    --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}\n")
    assert download(lock, tmp_path / "wheels", Architecture.X86_64, python="3.11") == (file,)  # no index has it
    assert matched(locked_packages(lock.read_text()), {file: A}) == {}


def test_names_that_mean_the_same_are_the_same() -> None:
    assert normal("Typing_Extensions") == normal("typing-extensions") == normal("typing.extensions")
