"""The page lists every probe with what it shows on AWS and on the stand-ins, as `frazil deploy smoke --json` prints it."""

from __future__ import annotations

from pathlib import Path

from frazil.smoke.probe import SUBJECTS


def test_the_page_has_a_row_for_each_probe(root: Path) -> None:
    page = (root / "docs" / "deploy.md").read_text()
    rows = [f"| {each.name} | {each.shows} | {each.stand_ins} |" for each in SUBJECTS]
    assert "\n".join(rows) in page, "\n".join(rows)
