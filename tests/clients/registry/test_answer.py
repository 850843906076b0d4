from __future__ import annotations

from typing import Any

import pytest

from frazil.clients.registry.client import UNKNOWN_SCHEMA
from frazil.clients.registry.http import Answer
from frazil.errors import RegistryUnavailable


def answer(status: int, body: Any) -> Answer:
    return Answer("http://registry", status, body)


def test_the_code_of_a_refusal_is_read() -> None:
    assert answer(404, {"error_code": 40403, "message": "Schema not found"}).error_code == UNKNOWN_SCHEMA


@pytest.mark.parametrize("body", [None, [], "x", {}, {"error_code": "40403"}, {"error_code": None}])
def test_a_refusal_may_have_no_code(body: Any) -> None:
    assert answer(404, body).error_code is None


def test_a_success_has_no_code() -> None:
    assert answer(200, {"error_code": 40403}).error_code is None


def test_a_message_may_be_missing() -> None:
    assert answer(409, {"message": "why"}).message == "why"
    assert answer(409, {"message": 1}).message == ""


@pytest.mark.parametrize(("status", "body"), [(200, []), (200, None), (404, {}), (302, {})])
def test_what_is_no_object_is_an_outage(status: int, body: Any) -> None:
    with pytest.raises(RegistryUnavailable, match=f"registry http://registry: it answered {status}"):
        answer(status, body).object()


@pytest.mark.parametrize(("status", "body"), [(200, {}), (200, ["a", 1]), (404, [])])
def test_what_is_no_list_is_an_outage(status: int, body: Any) -> None:
    with pytest.raises(RegistryUnavailable):
        answer(status, body).list(str)
