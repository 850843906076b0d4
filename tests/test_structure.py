"""The house: every module has a room, the rooms keep their doors, and nothing is called what says nothing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support import architecture

ROOMS = {folder for storey in architecture.storeys() for folder in storey}
LOBBY = {"__init__.py", "exit_codes.py", "version.py"}
SOURCES = ("infra", "jobs", "policies", "stacks")
TOP = {"bench", "infra", "jobs", "policies", "stacks", "tests", "docs"}
SAYS_NOTHING = {"utils", "util", "common", "helpers", "helper", "core", "manager", "base", "misc", "impl"}
SAME_NAME = {
    "apply": "how an operator's decision is applied, and the entry point that applies a deployment",
    "catalogs": "the catalogs as declared, and as options of Spark and PyIceberg",
    "review": "the review itself, and the entry point that plans for it",
    "tables": "Iceberg tables, and the rules about them",
    "wire_format": "the bytes of a frame, and how Spark reads them",
}
"""The only names of two modules outside `cli`: in these pairs the folder says the rest."""
MOST_ASK = 3
"""So many lines outside of `declaration` and `write` may ask for a write mode or an envelope by its type."""
LONGEST = 400  # lines; a longer module is split
MOST_MODULES = 15  # of one folder


def modules(root: Path) -> list[Path]:
    return sorted(module for folder in SOURCES for module in (root / folder).rglob("*.py"))


def test_every_module_of_the_wheel_is_in_a_room(root: Path) -> None:
    wheel = root / "jobs" / "frazil"
    for module in wheel.rglob("*.py"):
        first = module.relative_to(wheel).parts[0]
        assert first in ROOMS | LOBBY, f"{module} is in no room of the design"


def test_nothing_else_stands_at_the_top(root: Path) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout
    folders = {line.split("/")[0] for line in listed.splitlines() if "/" in line}
    assert {name for name in folders if not name.startswith(".")} <= TOP


def test_no_module_has_a_name_that_says_nothing(root: Path) -> None:
    for module in modules(root):
        parts = {module.stem, *module.relative_to(root).parts[:-1]}
        assert not parts & SAYS_NOTHING, module


def test_a_name_is_of_one_module_or_of_a_listed_pair(root: Path) -> None:
    counts = Counter(
        module.stem
        for module in modules(root)
        if "cli" not in module.relative_to(root).parts and not module.stem.startswith("__")
    )
    assert {name: count for name, count in counts.items() if count > 1} == dict.fromkeys(SAME_NAME, 2)


def test_every_module_says_what_it_is(root: Path) -> None:
    for module in modules(root):
        tree = ast.parse(module.read_text())
        assert not tree.body or ast.get_docstring(tree), f"{module} has no docstring"


def test_no_module_is_two_modules(root: Path) -> None:
    for module in modules(root):
        lines = len(module.read_text().splitlines())
        assert lines <= LONGEST, f"{module} has {lines} lines"


def test_no_folder_is_a_heap(root: Path) -> None:
    counts = Counter(module.parent for module in modules(root) if module.stem != "__init__")
    assert {folder: count for folder, count in counts.items() if count > MOST_MODULES} == {}


def test_few_places_ask_which_write_mode_or_envelope_a_pipeline_has(root: Path) -> None:
    """The modes say of their rows what others ask (`declaration/write_modes.py`), and `write` has a class for each."""
    modes = "Append|Upsert|Changelog"
    asks = re.compile(
        rf"isinstance\([^)]*\b({modes})\b|\bcase ({modes})\b|is_keyed\(|declared_key\(|(row_key|envelope) is (not )?None"
    )
    own = [root / "jobs" / "frazil" / room for room in ("declaration", "write")]
    places = [
        f"{module}:{number}"
        for module in modules(root)
        if not any(module.is_relative_to(folder) for folder in own)
        for number, line in enumerate(module.read_text().splitlines(), 1)
        if asks.search(line)
    ]
    assert len(places) <= MOST_ASK, places


def test_every_folder_of_tests_is_a_folder_of_the_source(root: Path) -> None:
    own = {"support", "scenarios", "e2e", "demo", "standin"}
    for folder in (root / "tests").iterdir():
        if folder.is_dir() and any(folder.glob("*.py")):
            assert folder.name in own | ROOMS | TOP, folder


@pytest.mark.parametrize("word", ["/" + "home/", "/" + "root/", "/" + "work/"])
def test_no_file_names_a_folder_of_somebodys_machine(root: Path, word: str) -> None:
    found = subprocess.run(["git", "grep", "-lI", "-F", word], cwd=root, capture_output=True, text=True, check=False)
    assert found.stdout.split() == []


def test_no_file_has_a_conflict_marker(root: Path) -> None:
    found = subprocess.run(
        ["git", "grep", "-nIE", "^(<{7}|>{7}) "], cwd=root, capture_output=True, text=True, check=False
    )
    assert found.stdout == ""


def test_nothing_goes_through_a_closed_door(root: Path) -> None:
    ended = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
