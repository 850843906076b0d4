"""Which lines of comments accept dangers."""

from __future__ import annotations

import pytest

from frazil.project.acceptances import lines

D = "0123456789abcdef"


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        (f"frazil accept {D} data_lost: it is empty", ("data_lost",)),
        (f"frazil accept {D * 4} data_lost, forgotten: it is empty", ("data_lost", "forgotten")),
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
        f"frazil accept {D} all:", f"frazil accept {D} all:   ", f"frazil accept {D} all", f"frazil accept {D[:15]} all: few digits",
        f"frazil accept {D.upper()} all: x", f"> frazil accept {D} all: quoted", f"  frazil accept {D} all: indented", f"`frazil accept {D} all: code`",
        f"please frazil accept {D} all: x", "frazil accept all: x", f"frazil accept {D}: x", f"frazil accept {D} all,: x",
        f"frazil accept {D} all: {'x' * 501}", f"frazil\u00a0accept {D} all: x", f"frazil accept {D} all: the reason",
        f"<!-- unseen\nfrazil accept {D} all: x\n-->", f"<!--\nfrazil accept {D} all: x",
    ],
)  # fmt: skip
def test_a_line_that_does_not(line: str) -> None:
    assert lines(line) == []


def test_a_block_of_code_accepts_nothing_whatever_is_inside() -> None:
    line = f"frazil accept {D} all: x"
    assert lines(f"```\n{line}\n```") == []
    assert lines(f"````\n```\n{line}\n````") == []
    assert lines(f"~~~\n```\n{line}\n~~~") == []
    assert lines(f"```\n{line}") == []
    assert lines(f"```\n``` x\n{line}\n```") == []
    assert len(lines(f"```\nx\n```\n{line}")) == 1
