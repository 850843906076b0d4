"""What becomes of clients of librdkafka that nothing uses any more; `test_kafka_security` has brokers."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from frazil.clients import kafka_connection
from frazil.clients.kafka_connection import Client, TokenLogin
from frazil.clients.secrets import Redactor
from frazil.clients.tokens import Tokens
from frazil.errors import TokenRefused, TokenUnavailable
from tests.clients.test_tokens import Numbered
from tests.support.fake_time import FakeTime

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}


class Holder:
    """What refers to itself, as a frame of an exception may: only garbage collection removes it."""

    def __init__(self, client: Client) -> None:
        self.client, self.itself = client, self


def test_a_client_that_is_collected_is_destroyed_by_the_next_one() -> None:
    """Garbage collection may run on librdkafka's own thread, where to destroy it aborts the process."""
    kept: Any = kafka_connection._dropped
    Client(NOWHERE, None)
    holder = Holder(Client(NOWHERE, None))
    gone, admin = weakref.ref(holder), id(holder.client.admin)
    assert admin not in map(id, kept)
    del holder
    gc.collect()
    assert gone() is None
    assert admin in map(id, kept)
    later = Client(NOWHERE, None)
    assert list(kept) == []
    assert later.failure is None


def test_a_client_that_is_replaced_is_collected_without_a_cycle() -> None:
    gc.disable()
    try:
        gone = weakref.ref(client := Client(NOWHERE, None))
        del client
        assert gone() is None
    finally:
        gc.enable()


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
