"""The layout of a review, and its verdict on each kind of change; `python -m tests.policies.review.cases` writes the goldens."""

from __future__ import annotations

import pytest

from policies.review.review import Verdict
from tests.policies.review.cases import CASES, GOLDEN, LAYOUTS, golden

REFUSED = {
    "columns_refused": ("data_effect",),
    "forgotten_moved_imported": ("forgotten",),
    "unfinished": ("data_lost", "not_reviewed"),
    "of_the_page": ("partitions_lowered",),
}
"""The codes of the dangers for which a case is refused."""


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_is_its_golden(name: str) -> None:
    assert golden(name) == (GOLDEN / f"{name}.md").read_text("utf-8")


def test_every_golden_has_its_case() -> None:
    assert {file.stem for file in GOLDEN.glob("*.md")} == set(LAYOUTS)


@pytest.mark.parametrize("name", CASES)
def test_a_kind_of_change_is_refused_or_not(name: str) -> None:
    found = CASES[name]()
    assert found.open_codes == REFUSED.get(name, ())
    wanted = Verdict.REFUSED if name in REFUSED else Verdict.NOTHING if name == "nothing" else Verdict.CHANGES
    assert found.verdict is wanted
