from __future__ import annotations

import pytest

from frazil.clients.kafka_tokens import TokenLogin
from frazil.clients.redactor import Redactor
from frazil.clients.tokens import Tokens
from frazil.errors import TokenRefused, TokenUnavailable
from tests.clients.test_tokens import Numbered
from tests.support.fake_time import FakeTime


class Case:
    def __init__(self) -> None:
        self.time = FakeTime()
        self.source = Numbered(self.time)
        self.tokens = Tokens(self.source, Redactor(), now=self.time.clock)


def test_a_client_is_given_the_token_that_it_began_with_and_its_extensions() -> None:
    case = Case()
    login = TokenLogin(case.tokens, {"logicalCluster": "lkc-1"})
    assert login.answer(None) == ("token-1", case.time.now + 100, "frazil", {"logicalCluster": "lkc-1"})
    assert (login.is_current, case.source.given) == (True, 1)


def test_a_client_whose_token_is_to_be_renewed_is_not_current() -> None:
    case = Case()
    login = TokenLogin(case.tokens, {})
    case.time.sleep(81)
    assert (login.is_current, login.is_due, login.has_expired) == (False, True, False)
    assert TokenLogin(case.tokens, {}).is_current


def test_a_token_that_librdkafka_asks_for_is_the_clients_from_then_on() -> None:
    case = Case()
    login = TokenLogin(case.tokens, {})
    case.time.sleep(81)
    assert login.answer(None)[0] == "token-2"
    assert login.is_current


def test_a_callback_never_raises_and_the_next_request_says_why() -> None:
    case = Case()
    login = TokenLogin(case.tokens, {})
    case.source.problem = TokenRefused("no")
    case.time.sleep(101)
    assert login.answer(None)[0] == "token-1"
    assert login.has_expired
    with pytest.raises(TokenRefused):
        _ = login.is_current


def test_without_a_first_token_there_is_no_login() -> None:
    case = Case()
    case.source.problem = TokenUnavailable("away")
    with pytest.raises(TokenUnavailable):
        TokenLogin(case.tokens, {})
