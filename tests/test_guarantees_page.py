"""The page of guarantees names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "guarantees.md"
NAMED = re.findall(r"`([\w/]+\.py)::(test_\w+)`", PAGE.read_text())


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_each_test_that_the_page_names_exists(root: Path, file: str, name: str) -> None:
    tree = ast.parse((root / "tests" / file).read_text())
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_each_guarantee_of_the_page_names_a_test() -> None:
    promised = PAGE.read_text().partition("\n## What is not promised")[0]
    guarantees = [line for line in promised.splitlines() if line.startswith("- ")]
    assert len(guarantees) > 150
    assert [line for line in guarantees if "::test_" not in line] == []
