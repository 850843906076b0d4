"""Odd inputs, in every field: each is refused with a place and a remedy, or read; nothing else comes out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any

import pytest

from frazil.declaration import (
    Append,
    At,
    InvalidDeclaration,
    Keep,
    Limits,
    Offsets,
    Pipeline,
    Reading,
    Spark,
    Table,
    Tableflow,
    Topic,
    Upsert,
    canonical,
    parse,
)
from frazil.declaration.documents.document import document

DECLARED = document(
    (
        Pipeline(topic=Topic("orders", value="avro"), table=Table("shop.orders", snapshots=Keep(days=3))),
        Pipeline(
            topic=Topic("clicks", value="json"),
            table=Table("shop.clicks", partition_by=("days(_kafka_timestamp)",)),
            kafka=Reading(options={"fetch.max.bytes": "1048576"}),
        ),
    )
)
ODD: dict[str, Any] = {
    "null": None,
    "true": True,
    "zero": 0,
    "negative": -1,
    "huge": 10**5000,
    "too long for a long": 2**63,
    "float": 1.5,
    "nan": float("nan"),
    "empty text": "",
    "control characters": "a\x00\n\x1b[31m",
    "half a surrogate": "\ud800",
    "look-alike": "\u0430vro",
    "full width": "\uff41\uff56\uff52\uff4f",
    "right to left": "\u202eorva",
    "long text": "x" * 100_000,
    "token": "${aws_glue.lake}",
    "list": [],
    "nested list": [[[None]]],
    "object": {},
    "unknown tag": {"type": "merge"},
    "tag of the wrong type": {"type": {"type": []}},
    "tag of another union": {"type": "latest"},
    "odd names": {"": 1, "a\nb": 2, "\u0430": 3, "type": None},
}
PLACES = Iterator[tuple[tuple[Any, ...], Any]]


def places(value: Any, path: tuple[Any, ...] = ()) -> PLACES:
    """Every place in a JSON value."""
    yield path, value
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from places(part, (*path, key))


def with_value(source: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(source)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return changed


def is_told(problems: tuple[Any, ...]) -> bool:
    """Whether each problem is one readable line, with a place and a remedy."""
    return bool(problems) and all(
        problem.path and problem.what and problem.do and str(problem).isprintable() and len(str(problem)) < 2000
        for problem in problems
    )


def must_be_told(invalid: InvalidDeclaration) -> None:
    assert is_told(invalid.problems), [str(problem)[:200] for problem in invalid.problems]


def read_or_told(source: Any) -> None:
    try:
        pipelines = parse(source)
    except InvalidDeclaration as invalid:
        must_be_told(invalid)
    else:
        assert parse(canonical(document(pipelines))) == pipelines


@pytest.mark.parametrize("odd", list(ODD))
def test_an_odd_value_in_any_place_of_a_document_is_told(odd: str) -> None:
    for path, _ in places(DECLARED):
        if path:
            read_or_told(with_value(DECLARED, path, ODD[odd]))


def test_a_null_is_told_where_it_is() -> None:
    optional = {"days", "$schema"}
    for path, _ in places(DECLARED):
        if path and path[-1] not in optional and path != ("version",):
            with pytest.raises(InvalidDeclaration) as raised:
                parse(with_value(DECLARED, path, None))
            written = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path).lstrip(".")
            last = f"[{path[-1]!r}]" if "options" in path[:-1] else None
            found = [problem.path for problem in raised.value.problems]
            assert any(each == written or (last and each.endswith(last)) for each in found), (written, found)


def test_an_odd_name_in_any_object_is_told() -> None:
    for path, value in places(DECLARED):
        if isinstance(value, Mapping) and "options" not in path and "properties" not in path:
            for name in ("", "a\nb", "n\u0430me", "x" * 5000, "__class__", "type ", "\ud800"):
                with pytest.raises(InvalidDeclaration) as raised:
                    parse(with_value(DECLARED, (*path, name), 1))
                assert is_told(raised.value.problems)


CLASSES: list[tuple[Any, dict[str, Any]]] = [
    (Topic, {"name": "a", "value": "avro"}),
    (Table, {"identifier": "a.b"}),
    (Limits, {}),
    (Append, {}),
    (Upsert, {}),
    (Spark, {}),
    (Tableflow, {}),
    (At, {"timestamp": None}),
    (Offsets, {"offsets": {0: 1}}),
    (Pipeline, {"topic": Topic("a", value="avro"), "table": Table("a.b")}),
]
ODD_IN_PYTHON = [*ODD.values(), object, object(), Topic, Append(), (1, None), {None: None}, b"a", print]


@pytest.mark.parametrize(("cls", "given"), CLASSES, ids=lambda value: getattr(value, "__name__", ""))
def test_an_odd_argument_of_any_class_is_told(cls: Any, given: dict[str, Any]) -> None:
    names = [*(each.name for each in fields(cls)), "start", "limits", "tombstones", "n\u0430me", "a\nb", ""]

    def calls() -> Iterator[Callable[[], Any]]:
        for value in ODD_IN_PYTHON:
            yield lambda value=value: cls(value)  # type: ignore[misc]
            yield lambda value=value: cls(value, value, value, **given)  # type: ignore[misc]
            for name in names:
                yield lambda name=name, value=value: cls(**{**given, name: value})  # type: ignore[misc]

    for call in calls():
        try:
            call()
        except InvalidDeclaration as invalid:
            must_be_told(invalid)
        except TypeError as error:
            assert "__init__()" in str(error)  # noqa: PT017 # of Python: a value is given twice, or without its name
