from __future__ import annotations

import pytest

from frazil.declaration.checks.constraints import (
    ABSOLUTE_PATH,
    NOT_EMPTY,
    WEB_ADDRESS,
    at_least,
    below,
    between,
    matching,
    one_of,
    seconds_of,
    shown,
    unknown,
)
from frazil.declaration.checks.problems import InvalidDeclaration


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (between(1, 3), [1, 3], [0, 4]),
        (at_least(1), [1, 2**63 - 1], [0, 2**63]),
        (one_of(2, 3), [2, 3], [1, 4]),
        (matching("a+", "an a", "Write a"), ["a", "aa"], ["", "ab", "a\n"]),
        (ABSOLUTE_PATH, ["/a/b c"], ["a", "~/a", ""]),
        (NOT_EMPTY, ["x", " x "], ["", "  "]),
        (
            WEB_ADDRESS,
            ["http://h", "https://h:8081/apis/ccompat/v7", "http://[::1]:1/"],
            ["h:80", "ftp://h", "http://"],
        ),
        (
            WEB_ADDRESS,
            [],
            ["http://h:0", "http://h:99999", "http://a b", "http://h/?x=1", "http://h/#x", "http://[::1"],
        ),
    ],
)
def test_a_rule_takes_what_it_means_and_refuses_the_rest(rule, good, bad):
    assert [value for value in good if rule.refusal(value)] == []
    assert [value for value in bad if not rule.refusal(value)] == []


def test_an_address_with_credentials_is_refused_without_repeating_them():
    for address in ("https://me:hunter2@host", "me:hunter2@host:80", "https://hunter2@host"):
        refusal = WEB_ADDRESS.refusal(address)
        assert refusal
        assert "hunter2" not in f"{refusal}"


def test_a_value_is_shown_as_python_writes_it_and_cut_when_long():
    assert shown("a'b") == '"a\'b"'
    assert len(shown("x" * 10_000)) < 100
    assert "10002 characters" in shown("x" * 10_000)


@pytest.mark.parametrize(
    ("name", "path"),
    [("a", "p.a"), ("", "p['']"), ("a b", "p['a b']"), ("a\n", r"p['a\n']"), (1, "p.1"), ("x-y.z", "p.x-y.z")],
)
def test_a_path_stays_one_readable_line(name, path):
    assert below("p", name) == path


def test_a_number_that_python_does_not_write_is_described():
    assert shown(10**5000) == "a number of thousands of digits"


@pytest.mark.parametrize(
    ("name", "do"),
    [
        ("value_fromat", "Did you mean value_format?"),
        ("valueFormat", "Did you mean value_format?"),
        ("NAME", "Did you mean name?"),
        ("zzz", "Remove it; the fields are name, value_format"),
        ("", "Remove it; the fields are name, value_format"),
        (3, "Remove it; the fields are name, value_format"),
    ],
)
def test_the_nearest_known_name_is_offered(name, do):
    assert unknown(name, ["name", "value_format"]) == ("there is no such field", do)


def test_letters_that_only_look_alike_are_shown_by_their_number():
    assert unknown("n\u0430me", ["name"]).what == (
        r"there is no such field; 'n\u0430me' has letters beyond a-z that look like others"
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7 days", 604_800),
        ("1 day", 86_400),
        ("36 hours", 129_600),
        ("90 minutes", 5_400),
        ("36500 days", 3_153_600_000),
    ],
)
def test_a_number_and_a_unit_are_seconds(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "7", "days", "0 days", "-1 days", "7days", "7 Days", "1.5 days", "3 weeks", "\u0667 days"]
)
def test_other_text_is_no_duration(text: str) -> None:
    with pytest.raises(InvalidDeclaration, match="is no duration"):
        seconds_of(text)


def test_a_duration_has_an_end() -> None:
    with pytest.raises(InvalidDeclaration, match="Write 36500 days at most"):
        seconds_of("36501 days")
