"""Declared columns that are a key: which types are none. Without a declaration the first run finds out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from frazil.declaration.column_notation import JSON, column
from frazil.declaration.problems import InvalidDeclaration, Problem
from frazil.declaration.topic import Topic

_NO_KEYS = {
    "float": "two numbers that look equal may not be",
    "double": "two numbers that look equal may not be",
    "list": "a key is one value",
    "map": "a key is one value",
    "struct": "a key is one value",
    JSON: "two texts of JSON can be one key",
    "io.debezium.data.VariableScaleDecimal": "each number has a scale of its own, and equal ones can differ",
}
_DO = "Keys are integers, text, bytes, booleans, dates, timestamps and decimals: declare such a type if it is the producers'"


def key_column_problems(topic: Topic, names: Sequence[str]) -> Iterator[Problem]:
    """Yield the declared columns of a table's key that cannot be one: those of the record's key, or of the value by `names`."""
    for index, (name, kind) in enumerate(_types(topic.key_columns)):
        if not names or _folded(name) in names:
            yield from _problem(f"topic.key_columns[{index}]", name, kind, "another key, or write=Append()")
    found = {_folded(name): kind for name, kind in _types(topic.columns)}
    for index, name in enumerate(names):
        yield from _problem(f"write.key[{index}]", name, found.get(name, ""), "another column")


def _problem(path: str, name: str, kind: str, other: str) -> Iterator[Problem]:
    if why := _NO_KEYS.get(kind):
        yield Problem(path, f"{name} is of type {kind}, which is no key: {why}", f"{_DO}. Otherwise choose {other}")


def _types(texts: Sequence[str] | None) -> Iterator[tuple[str, str]]:
    for text in texts or ():
        try:
            declared = column(text)
        except InvalidDeclaration:
            yield text, ""  # it is refused by itself
        else:
            yield declared.name, declared.type.name


def _folded(name: str) -> str:
    return re.sub("[^a-z0-9_]", "_", name.lower())
