"""The Markdown shows other people's text and never obeys it; and it is never too long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from policies.review.markdown.escaping import cell, code, plain, prose
from policies.review.markdown.page import LONGEST, markdown, marker
from tests.policies.review.cases import CASES
from tests.policies.review.planning import change, plan, reviewed

RENDERER = MarkdownIt("gfm-like", {"linkify": False})
OWN_HTML = re.compile(r"<!-- frazil deploy plan [a-z0-9-]+ -->|</?details>|<summary>[^<]*</summary>|<br>")
MENTION = re.compile(r"(?:^|\W)@[a-zA-Z0-9]|(?:^|[^\w&])#\d|://|\bwww\.", re.IGNORECASE)


def inert(text: str) -> list[str]:
    """Why a page is not inert: markup, HTML or links that are not ours, and what GitHub makes links of."""
    problems = []
    for token in _flat(RENDERER.parse(text)):
        if token.type in {"link_open", "image"}:
            problems.append(f"{token.type} {token.attrs}")
        if token.type in {"html_block", "html_inline"} and OWN_HTML.sub("", token.content).strip():
            problems.append(f"HTML {token.content!r}")
        if token.type == "text" and MENTION.search(token.content):
            problems.append(f"mention {token.content!r}")
    return problems


def _flat(tokens: list[Token]) -> list[Token]:
    return [each for token in tokens for each in (token, *_flat(token.children or []))]


@pytest.mark.parametrize("name", CASES)
def test_the_markdown_of_every_case_is_inert(name: str) -> None:
    assert inert(markdown(CASES[name]())) == []


def test_what_is_not_inert_would_be_seen() -> None:
    """The test above can fail."""
    bad = "ask @anna, see #12, [a](https://evil.example), <b>, ![i](x), https://evil.example"
    assert len(inert(bad)) >= 4


NASTY = st.lists(
    st.sampled_from(
        [*"@#`|<>[]()!*_~&\\$:/.{}\"'=-+ \n\t\r\u202e\u200b\ud800\x00", "www", "http", "x", "1", "</details>"]
    ),
    max_size=40,
).map("".join)


@settings(max_examples=300, deadline=None)
@given(NASTY)
def test_any_text_is_inert_as_code_in_a_cell_and_in_a_sentence(text: str) -> None:
    page = f"- {code(text)}: x\n- {prose(text)}\n\n| a | b |\n|---|---|\n| {cell(text)} | {prose(text)} |\n\nend"
    assert inert(page) == []
    tokens = _flat(RENDERER.parse(page))
    assert sum(token.type == "td_open" for token in tokens) == 2
    assert sum(token.type == "list_item_open" for token in tokens) == 2
    assert tokens[-2].content == "end" or any(token.content == "end" for token in tokens)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.sampled_from(list("@#`|<>[]()!*_~&\\$:/. ax1")), min_size=1, max_size=30))
def test_a_code_span_shows_its_text_as_it_is(text: str) -> None:
    [span] = [token for token in _flat(RENDERER.parse(f"x {code(text)} y")) if token.type == "code_inline"]
    assert span.content.strip() == plain(text).strip()


def test_a_long_value_of_a_table_is_cut() -> None:
    assert cell("x" * 1000).endswith("x…`")
    assert len(cell("x" * 1000)) < 170


def test_characters_that_turn_or_hide_text_are_shown_as_escapes() -> None:
    assert plain("a\u202eb\u200bc\x00d\ne") == "a\\u202eb\\u200bc\\x00d e"


def test_the_comment_is_found_by_its_first_line() -> None:
    assert markdown(CASES["nothing"]()).startswith(f"{marker('dev')}\n")


def test_a_review_that_is_too_long_keeps_what_is_dangerous_and_says_that_it_is_cut() -> None:
    lost = change("aws_kms_key.lake", "delete", {"description": "lake"})
    many = [change(f"aws_subnet.s{number}", "create", None, {"n": number}) for number in range(2_000)]
    told = markdown(reviewed(plan(lost, *many)))
    assert len(told) <= LONGEST
    assert "`data_lost`" in told
    assert "+2000 " in told
    assert told.endswith("</details>\n\n… The rest is omitted: the review is too long.\n")
    assert inert(told) == []


def test_even_too_many_dangers_are_cut_and_counted() -> None:
    lost = [change(f"aws_kms_key.k{number}", "delete", {"description": "x" * 100}) for number in range(2_000)]
    told = markdown(reviewed(plan(*lost)))
    assert len(told) <= LONGEST
    assert "2000 dangers" in told
    assert "The rest is omitted" in told
