"""The page has a row for each subject of a probe, in their order."""

from __future__ import annotations

import re
from pathlib import Path

from frazil.smoke.probe import Subject


def test_the_page_has_a_row_for_each_subject(root: Path) -> None:
    section = (root / "docs" / "deploy.md").read_text().partition("| probe | what it shows on AWS |")[2]
    rows = re.findall(r"^\| ([a-z ]+) \| .+ \|$", section.partition("\n\n")[0], re.MULTILINE)
    assert rows == [*Subject]
