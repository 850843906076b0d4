"""When a token is renewed, without an endpoint; `test_token_endpoint` has one."""

from __future__ import annotations

import threading

import pytest

from frazil.clients.redactor import Redactor
from frazil.clients.tokens import Token, Tokens
from frazil.errors import SecretUnavailable, TokenUnavailable
from tests.support.fake_time import FakeTime


class Numbered:
    """Gives tokens of 100 seconds, `token-1` first; `problem` is raised instead."""

    references = "env CLIENT"

    def __init__(self, time: FakeTime) -> None:
        self.time, self.given, self.forgotten = time, 0, 0
        self.problem: Exception | None = None

    def fetch(self) -> Token:
        if self.problem is not None:
            raise self.problem
        self.given += 1
        return Token(f"token-{self.given}", self.time.clock(), self.time.clock() + 100)

    def forget(self) -> None:
        self.forgotten += 1


class Case:
    def __init__(self) -> None:
        self.time, self.redactor = FakeTime(), Redactor()
        self.source = Numbered(self.time)
        self.tokens = Tokens(self.source, self.redactor, now=self.time.clock)

    def after(self, seconds: float) -> str:
        self.time.sleep(seconds)
        return self.tokens.current().value


def test_a_token_serves_for_four_fifths_of_its_lifetime() -> None:
    case = Case()
    assert [case.after(0), case.after(79), case.after(2), case.after(79), case.after(500)] == [
        "token-1", "token-1", "token-2", "token-2", "token-3",
    ]  # fmt: skip


@pytest.mark.parametrize("problem", [TokenUnavailable("away"), SecretUnavailable("away")])
def test_a_token_serves_until_it_expires_if_no_other_can_be_had(problem: Exception) -> None:
    case = Case()
    case.after(0)
    case.source.problem = problem
    assert case.after(90) == "token-1"
    with pytest.raises(type(problem)):
        case.after(10)


def test_a_refused_token_is_not_used_again_even_if_no_other_can_be_had() -> None:
    case = Case()
    case.after(0)
    case.tokens.forget()
    assert case.source.forgotten == 1
    case.source.problem = TokenUnavailable("away")
    with pytest.raises(TokenUnavailable):
        case.after(0)
    case.source.problem = None
    assert case.after(0) == "token-2"


def test_only_the_current_token_and_the_one_before_are_kept_for_masking() -> None:
    case = Case()
    for _ in range(5):
        case.after(81)
    masked = [number for number in range(1, 6) if case.redactor.redact(f"token-{number}") == "[redacted]"]
    assert masked == [4, 5]


def test_threads_share_one_token() -> None:
    case, found = Case(), list[str]()
    threads = [threading.Thread(target=lambda: found.append(case.after(0))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["token-1"] * 16
