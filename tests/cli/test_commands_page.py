"""docs/reference/commands.md is what its generator writes."""

from __future__ import annotations

from tests.support import commands_page


def test_the_page_is_that_of_the_commands() -> None:
    assert commands_page.PAGE.read_text() == commands_page.page(), "run python -m tests.support.commands_page"
