"""Owners by CODEOWNERS: the last pattern counts, and patterns match as GitHub documents."""

from __future__ import annotations

import pytest

from frazil.project.code_owners import owners

FILE = "deployed/prod.json"


@pytest.mark.parametrize(
    "pattern",
    ["*", "*.json", "prod.json", "deployed", "deployed/", "/deployed/", "/deployed", "deployed/*", "deployed/prod.json", "/deployed/prod.json",
     "**/prod.json", "deployed/**", "d*/prod.json", "/**/prod.json"],
)  # fmt: skip
def test_a_pattern_that_names_the_file_or_a_folder_above(pattern: str) -> None:
    assert owners(f"{pattern} @ann", FILE) == ("@ann",)


@pytest.mark.parametrize(
    "pattern",
    ["*.js", "rod.json", "/prod.json", "ploy", "deployed/prod", "/docs/", "prod.json/", "!deployed", "[d]eployed/prod.json", "deployed/prod?json.",
     "deployed/*/prod.json"],
)  # fmt: skip
def test_a_pattern_that_does_not(pattern: str) -> None:
    assert owners(f"{pattern} @ann", FILE) == ()


def test_files_in_a_folder_below_do_not_match_a_single_star() -> None:
    assert owners("deployed/* @ann", "deployed/eu/prod.json") == ()
    assert owners("deployed/ @ann", "deployed/eu/prod.json") == ("@ann",)


def test_the_last_line_counts_even_if_it_names_no_owner() -> None:
    text = "# owners\n* @all\n/deployed/ @org/platform @ben # the platform team\n"
    assert owners(text, FILE) == ("@org/platform", "@ben")
    assert owners(f"{text}/deployed/prod.json\n", FILE) == ()
    assert owners("* someone@example.com @ann", FILE) == ("@ann",)
    assert owners("", FILE) == ()
