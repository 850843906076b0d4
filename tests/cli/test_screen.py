"""Numbers and times for people; log lines for programs."""

from __future__ import annotations

import json

import pytest

from frazil.cli.screen import duration, log_lines, number
from frazil.clients.redactor import Redactor


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(None, "–"), (0.84, "0.8 s"), (12.2, "12 s"), (119, "119 s"), (180, "3 min"), (18_000, "5 h"), (345_600, "4 d")],
)
def test_a_duration_is_told_in_the_unit_that_fits(seconds: float | None, told: str) -> None:
    assert duration(seconds) == told


def test_a_count_has_separators() -> None:
    assert (number(336_776), number(None)) == ("336,776", "–")


def test_an_event_is_one_line_without_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    redactor = Redactor()
    redactor.add("hunter2hunter2")
    log_lines(redactor)({"event": "failed", "why": "the broker said:\nhunter2hunter2"})
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line) == {"event": "failed", "why": "the broker said:\n[redacted]"}
