"""The workflow that tests a change runs code of forks: it has no secret, reads only, and uses the actions that the review uses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

FOLDER = Path(".github/workflows")


@pytest.fixture(scope="module")
def text(root: Path) -> str:
    return (root / FOLDER / "test.yml").read_text()


@pytest.fixture(scope="module")
def job(text: str) -> dict[str, Any]:
    [found] = yaml.safe_load(text)["jobs"].values()
    assert isinstance(found, dict)
    return found


def test_it_has_no_secret_and_only_reads(text: str, job: dict[str, Any]) -> None:
    assert yaml.safe_load(text)["permissions"] == {}
    assert job["permissions"] == {"contents": "read"}
    assert "secrets" not in re.sub(r"#.*", "", text)
    assert "pull_request_target" not in text


def test_its_actions_are_pinned_as_the_review_pins_them(text: str, root: Path) -> None:
    used = set(re.findall(r"uses: (.+)", text))
    assert used
    assert used <= set(re.findall(r"uses: (.+)", (root / FOLDER / "review.yml").read_text()))
