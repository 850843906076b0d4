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


def test_each_row_of_the_page_names_a_test() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if re.match(r"\| (?!---|fault|mistake|format|damage)", line)]
    assert len(rows) > 40
    assert [row for row in rows if "::test_" not in row] == []
