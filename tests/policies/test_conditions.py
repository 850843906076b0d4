"""Conditions: what holds when a key is there, is not there, or has several values."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.iam_conditions import holds

KEY = "aws:SourceAccount"


def ask(operator: str, wanted: Any, given: Any = None) -> bool:
    return holds({operator: {KEY: wanted}}, {} if given is None else {KEY: given})


@pytest.mark.parametrize(
    ("operator", "without_key"),
    [
        ("StringEquals", False),
        ("StringEqualsIfExists", True),
        ("StringNotEquals", True),
        ("StringNotEqualsIfExists", True),
        ("StringLike", False),
        ("ArnLike", False),
        ("ArnNotLike", True),
        ("Bool", False),
        ("BoolIfExists", True),
        ("NumericLessThan", False),
        ("ForAnyValue:StringEquals", False),
        ("ForAllValues:StringEquals", True),
    ],
)
def test_a_key_that_is_not_there(operator: str, without_key: bool) -> None:
    assert ask(operator, "1") is without_key


@pytest.mark.parametrize(
    ("wanted", "given", "is_true"),
    [("true", None, True), ("true", "x", False), ("false", None, False), (False, "x", True)],
)
def test_null_asks_whether_a_key_is_there(wanted: Any, given: str | None, is_true: bool) -> None:
    assert ask("Null", wanted, given) is is_true


def test_one_of_several_wanted_values_is_enough_and_none_may_be_unwanted() -> None:
    assert ask("StringEquals", ["1", "2"], "2")
    assert not ask("StringNotEquals", ["1", "2"], "2")
    assert ask("StringNotEquals", ["1", "2"], "3")


def test_a_key_of_several_values() -> None:
    assert ask("ForAnyValue:StringEquals", ["1"], ["1", "9"])
    assert not ask("ForAllValues:StringEquals", ["1"], ["1", "9"])
    assert ask("ForAllValues:StringEquals", ["1", "9"], ["1", "9"])
    assert ask("ForAnyValue:StringNotEquals", ["1"], ["1", "9"])


def test_all_conditions_must_hold() -> None:
    both = {"StringEquals": {KEY: "1"}, "Bool": {"aws:SecureTransport": "true"}}
    assert holds(both, {KEY: "1", "AWS:securetransport": "TRUE"})
    assert not holds(both, {KEY: "1"})


def test_numbers_are_compared_as_numbers() -> None:
    assert ask("NumericLessThan", "1.2", "1.10")
    assert not ask("NumericLessThan", "1.2", "1.2")
    assert not ask("NumericLessThan", "1.2", "none")
