"""docs/review.md shows what the tool makes."""

from __future__ import annotations

import json
import re
from pathlib import Path

from policies.review.markdown.page import LONGEST
from policies.review.prices import price_table
from tests.policies.review.cases import golden


def test_the_example_is_what_the_tool_makes_up_to_the_folded_parts(root: Path) -> None:
    page = (root / "docs" / "review.md").read_text("utf-8")
    [example] = re.findall(r"~~~~markdown\n(.*?)~~~~\n", page, re.DOTALL)
    assert golden("of_the_page").startswith(f"{example}\n<details>")
    assert f"{LONGEST:,} characters" in page


def test_the_assumptions_of_the_page_can_be_given(root: Path) -> None:
    page = (root / "docs" / "review.md").read_text("utf-8")
    [told] = re.findall(r"echo '(\{.*\})' > assumptions.json", page)
    assert price_table(json.loads(told)).gb_of("orders") == 800
