"""Numbers and times for people; log lines for programs."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from frazil.cli.console import duration, log_lines, number, plain, print_error, show_json, table
from frazil.clients.secrets import Redactor


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
    told = json.loads(line)
    assert (told["event"], told["why"]) == ("failed", "the broker said:\n[redacted]")


HOSTILE = "\x1b[2Jgone\x9b31m\u202egnp.exe\ud800\r\n\x07"


def is_inert(told: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in told)


def test_a_text_from_outside_cannot_act_on_the_terminal() -> None:
    assert plain("grüße 東京 🎉") == "grüße 東京 🎉"
    assert plain(HOSTILE) == r"\x1b[2Jgone\x9b31m\u202egnp.exe\ud800\r\n\x07"


def test_json_for_a_terminal_is_inert_and_means_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    show_json({"value": HOSTILE, "flag": "\U000e0041"})
    told = capsys.readouterr().out
    assert is_inert(told)
    assert json.loads(told) == {"value": HOSTILE, "flag": "\U000e0041"}


def test_events_and_errors_are_inert_too(capsys: pytest.CaptureFixture[str]) -> None:
    log_lines(Redactor())({"why": HOSTILE})
    print_error(f"field {HOSTILE}")
    told = capsys.readouterr().err
    assert is_inert(told)
    assert json.loads(told.splitlines()[0])["why"] == HOSTILE


@pytest.mark.parametrize("width", [24, 40, 60, 80, 120])
def test_no_number_is_cut_or_folded_on_a_narrow_screen(width: int) -> None:
    numbers = ("records", "per second", "lag", "rejected")
    shown = table("pipeline", *numbers, "", right=numbers, drop=("per second",))
    shown.add_row("a_pipeline_with_a_long_name", "1,234,567", "12,346", "500,000", "1,004", "running")
    console = Console(width=width, file=io.StringIO())
    console.print(shown)
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert {"1,234,567", "500,000", "1,004", "running"} <= set(told.split())
    assert all(heading in told for heading in ("records", "lag", "rejected"))
    assert ("per second" in told) is (width >= 80)
    assert max(map(len, told.splitlines())) <= width
