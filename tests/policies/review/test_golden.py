"""The layout of a review, and its verdict on each kind of change; `python -m tests.policies.review.cases` writes the goldens."""

from __future__ import annotations

import pytest

from policies.review.review import Verdict
from tests.policies.review.cases import CASES, GOLDEN, LAYOUTS, golden

REFUSED = {
    "pipeline_removed",
    "columns_refused", "bucket_replaced", "kafka_retention_cut", "trust_unknown",
    "forgotten_moved_imported", "unfinished", "of_the_page",
}  # fmt: skip
NOTHING = {"nothing"}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_is_its_golden(name: str) -> None:
    assert golden(name) == (GOLDEN / f"{name}.md").read_text("utf-8")


def test_every_golden_has_its_case() -> None:
    assert {file.stem for file in GOLDEN.glob("*.md")} == set(LAYOUTS)


@pytest.mark.parametrize("name", CASES)
def test_a_kind_of_change_is_refused_or_not(name: str) -> None:
    wanted = Verdict.REFUSED if name in REFUSED else Verdict.NOTHING if name in NOTHING else Verdict.CHANGES
    assert CASES[name]().verdict is wanted
