from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from typing import Annotated

import pytest

from frazil.declaration import (
    At,
    ErrorMode,
    Latest,
    Pipeline,
    Problem,
    Secret,
    Spark,
    Table,
    Topic,
)
from frazil.declaration.checks.constraints import at_least
from frazil.declaration.checks.problems import Refusal
from frazil.declaration.checks.validation import FrozenMap, path_refusal, read, validate
from tests.declaration.problems_of import problems_of

ORDERS = Pipeline(topic=Topic("orders", value="avro"), table=Table("a.b"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallThing:
    count: Annotated[int, "A number.", at_least(1)] = 1
    names: tuple[str, ...] = ()
    weights: Mapping[str, Annotated[int, at_least(0)]] | None = None
    password: Secret | None = None

    def __post_init__(self) -> None:
        validate(self, self._contradictions)

    def _contradictions(self) -> Iterator[Problem]:
        if len(self.names) > self.count:
            yield Problem("names", "there are more names than count", "Raise count")


class Word(str, Enum):  # noqa: UP042 # f"{Word.A}" is Word.A
    A = "a"


class Number(IntEnum):
    ONE = 1


def test_values_of_the_right_type_pass_and_mappings_are_frozen():
    thing = SmallThing(count=2, names=("a",), weights={"b": 1, "a": 0})
    assert thing.weights == {"a": 0, "b": 1}
    assert hash(thing) == hash(SmallThing(count=2, names=("a",), weights={"a": 0, "b": 1}))


def test_all_problems_of_an_object_are_told_at_once():
    found = problems_of(lambda: SmallThing(count=0, names=("a",), weights={"a": -1, "b": 1}))
    assert sorted(found) == ["small_thing.count", "small_thing.names", "small_thing.weights['a']"]


def test_contradictions_are_not_asked_of_values_of_the_wrong_type():
    assert sorted(problems_of(lambda: SmallThing(count="x", names=("a", 1)))) == [
        "small_thing.count",
        "small_thing.names[1]",
    ]


@pytest.mark.parametrize(
    ("values", "path", "told"),
    [
        ({"count": True}, "count", "True is of type bool. Write a whole number"),
        ({"count": 1.0}, "count", "1.0 is of type float. Write a whole number"),
        ({"count": None}, "count", "this is nothing (None). Write a whole number"),
        ({"names": "days(x)"}, "names", "'days(x)' is of type str. Write a tuple, also of one: ('days(x)',)"),
        ({"names": ["a"]}, "names", "this is of type list. Write a tuple: it cannot change afterwards"),
        ({"names": (Word.A,)}, "names[0]", "<Word.A: 'a'> is of type Word. Write text"),
        ({"weights": {Word.A: 1}}, "weights[<Word.A: 'a'>]", "<Word.A: 'a'> is of type Word. Write text"),
        ({"count": Number.ONE}, "count", "<Number.ONE: 1> is of type Number. Write a whole number"),
        ({"weights": (1,)}, "weights", "this is of type tuple. Write a mapping, or None"),
        ({"weights": {1: 1}}, "weights[1]", "1 is of type int. Write text"),
        ({"password": "hunter2"}, "password", "this is of type str. Write Secret(…), or None"),
    ],
)
def test_a_value_of_the_wrong_type_is_told_with_what_belongs_there(values, path, told):
    assert problems_of(lambda: SmallThing(**values)) == {f"small_thing.{path}": told}


@pytest.mark.parametrize("value", ["first", "timestamp", "offsets", ""])
def test_a_text_that_names_no_choice_or_one_with_parameters_is_refused(value):
    [told] = problems_of(lambda: replace(ORDERS, start=value)).values()
    assert told.startswith(f"{value!r} is not one of its values. Write Earliest() or Latest() or At(…)")


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("start", Latest, "this is the class Latest, not an instance. Write Latest()"),
        ("start", At, "this is the class At, not an instance. Write At(…)"),
        ("start", Spark, "this is the class Spark. Write Earliest() or Latest() or At(…) or Offsets(…)"),
        ("engine", Spark, "this is the class Spark, not an instance. Write Spark()"),
        ("topic", Topic, "this is the class Topic, not an instance. Write Topic(…)"),
        ("name", str, "this is the class str. Write text"),
        ("on_error", ErrorMode, "this is the class ErrorMode. Write one of suspend, skip, dead_letter"),
        ("kafka", dict, "this is the class dict. Write Reading(…)"),
    ],
)
def test_a_class_where_an_instance_belongs_is_told_with_its_call(field, value, told):
    assert problems_of(lambda: replace(ORDERS, **{field: value})) == {f"pipeline.{field}": told}


@pytest.mark.parametrize("token", ["${aws_glue.lake.name}", "${TfToken[TOKEN.0]}", "#{TfToken[TOKEN.1]}", "shop.${x}"])
def test_a_terraform_token_is_no_value_wherever_it_stands(token):
    def told(make):
        return next(iter(problems_of(make).values()))

    assert "Terraform token" in told(lambda: SmallThing(names=(token,)))
    assert "Terraform token" in told(lambda: SmallThing(weights={token: 1}))
    assert "Terraform token" in told(lambda: Table(token))


@pytest.mark.parametrize("text", ["a\nb", "a\x00", "\x7f", "\ud800"])
def test_text_that_cannot_be_printed_or_encoded_is_refused(text):
    assert "small_thing.names[0]" in problems_of(lambda: SmallThing(names=(text,)))


def test_order_of_writing_changes_neither_hash_nor_text():
    one, other = FrozenMap({"b": 1, "a": 2}), FrozenMap({"a": 2, "b": 1})
    assert hash(one) == hash(other)
    assert repr(one) == repr(other) == "{'a': 2, 'b': 1}"


def test_it_does_not_change_with_the_mapping_it_was_made_of():
    source = {"a": 1}
    frozen = FrozenMap(source)
    source["a"] = 2
    assert frozen["a"] == 1
    with pytest.raises(TypeError):
        frozen["a"] = 3  # type: ignore[index]


@dataclass
class Digits:
    of: int

    @classmethod
    def read(cls, path: str) -> Digits | Refusal:
        return cls(int(path)) if path.isdecimal() else Refusal("no number", "Write one")


def test_paths_are_read_and_other_values_stay() -> None:
    assert read(Digits, ("1", "x", Digits(2), None)) == (Digits(1), "x", Digits(2), None)
    assert read(str, ("1",)) == ("1",)


def test_a_path_that_is_refused_says_why() -> None:
    assert path_refusal(Digits, "x") == Refusal("no number", "Write one")
    assert path_refusal(Digits, "1") is path_refusal(Digits, None) is path_refusal(str, "x") is None
