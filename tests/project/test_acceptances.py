"""Which lines of comments accept dangers."""

from __future__ import annotations

import pytest

from frazil.project.acceptances import lines

D = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        (f"frazil accept {D} data_lost: it is empty", ("data_lost",)),
        (f"frazil accept {D} data_lost, forgotten: it is empty", ("data_lost", "forgotten")),
        (f"frazil accept {D} data_lost forgotten : it is empty", ("data_lost", "forgotten")),
        (f"frazil accept {D} all: it is empty  \r", ("all",)),
    ],
)
def test_a_line_that_accepts(line: str, codes: tuple[str, ...]) -> None:
    [(_, found, reason)] = lines(f"Dear all,\n{line}\nbye")
    assert (found, reason) == (codes, "it is empty")


@pytest.mark.parametrize(
    "line",
    [
        f"frazil accept {D} all:", f"frazil accept {D} all:   ", f"frazil accept {D} all",
        f"frazil accept {D.upper()} all: x", f"> frazil accept {D} all: quoted", f"  frazil accept {D} all: indented", f"`frazil accept {D} all: code`",
        f"please frazil accept {D} all: x", "frazil accept all: x", f"frazil accept {D}: x", f"frazil accept {D} all,: x",
        f"frazil accept {D} all: {'x' * 501}", f"frazil\u00a0accept {D} all: x", f"frazil accept {D} all: the reason",
        f"<!-- unseen\nfrazil accept {D} all: x\n-->", f"<!--\nfrazil accept {D} all: x",
    ],
)  # fmt: skip
def test_a_line_that_does_not(line: str) -> None:
    assert lines(line) == []


@pytest.mark.parametrize("digits", [1, 16, 63, 65])
def test_a_line_with_another_number_of_digits_is_read_so_that_it_can_be_refused(digits: int) -> None:
    """A person who copies the beginning of a digest gets to know why it does not count."""
    [(digest, _, _)] = lines(f"frazil accept {(D * 2)[:digits]} all: it is empty")
    assert len(digest) == digits


def test_a_block_of_code_accepts_nothing_whatever_is_inside() -> None:
    line = f"frazil accept {D} all: x"
    assert lines(f"```\n{line}\n```") == []
    assert lines(f"````\n```\n{line}\n````") == []
    assert lines(f"~~~\n```\n{line}\n~~~") == []
    assert lines(f"```\n{line}") == []
    assert lines(f"```\n``` x\n{line}\n```") == []
    assert len(lines(f"```\nx\n```\n{line}")) == 1
