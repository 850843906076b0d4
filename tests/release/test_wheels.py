"""A wheel's content is what importing needs, and nothing that leaves its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil.errors import ReleaseIncomplete
from frazil.release.wheels import content, facts, merged
from tests.support.small_release import wheel


def test_libraries_of_both_kinds_come_to_the_top_and_scripts_stay_behind(tmp_path: Path) -> None:
    files = {
        "a.py": b"1",
        "x-1.0.data/platlib/b.so": b"2",
        "x-1.0.data/purelib/c.py": b"3",
        "x-1.0.data/scripts/d": b"4",
    }
    assert set(content(wheel(tmp_path, "x", files))) == {"a.py", "b.so", "c.py", "x-1.0.dist-info/METADATA"}


@pytest.mark.parametrize("name", ["../evil.py", "/etc/evil.py", "x-1.0.data/purelib/../../evil.py"])
def test_an_entry_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ReleaseIncomplete, match="leaves the folder"):
        content(wheel(tmp_path, "x", {name: b""}))


def test_two_wheels_may_share_a_file_but_not_disagree_about_it(tmp_path: Path) -> None:
    one, same = wheel(tmp_path, "one", {"google/x.py": b"1"}), wheel(tmp_path, "same", {"google/x.py": b"1"})
    other = wheel(tmp_path, "other", {"google/x.py": b"2"})
    assert merged([one, same])["google/x.py"] == b"1"
    with pytest.raises(ReleaseIncomplete, match="another wheel has google/x.py"):
        merged([one, other])


@pytest.mark.parametrize(
    ("metadata", "licence"),
    [
        ("License-Expression: MIT OR Apache-2.0\n", "MIT OR Apache-2.0"),
        ("License: BSD\n", "BSD"),
        ("License: " + "x" * 100 + "\nClassifier: License :: OSI Approved :: MIT License\n", "MIT License"),
        ("", ""),
    ],
)
def test_a_licence_is_told_as_shortly_as_the_wheel_does(tmp_path: Path, metadata: str, licence: str) -> None:
    told = facts(wheel(tmp_path, "A_b", {}, metadata=metadata))
    assert (told.name, told.version, told.licence) == ("a-b", "1.0", licence)
