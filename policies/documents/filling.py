"""The filling of a policy's placeholders on the parsed tree, so that no value can change the policy's structure.

`{{name}}` is a part of a string. A single value replaces it. A list of values replaces the string by one string per value, in
the list that held it. A value is literal, or `Below`, the one kind that may mean more. Nothing else in a document varies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any


class Below(str):
    """A value that means everything below a place, `shop/*`. IAM reads its wildcard; the place itself must be literal."""

    __slots__ = ("place",)

    place: str

    def __new__(cls, place: str) -> Below:
        """Return the pattern of everything below `place`."""
        made = super().__new__(cls, f"{place}/*")
        made.place = place
        return made


Value = str | Sequence[str]

_HERE = Path(__file__).parent
_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")
REFERENCE = re.compile(
    r"\$\{(?:TfToken\[[A-Z0-9._]+\]|[a-zA-Z_][a-zA-Z0-9_-]*(?:\.[a-zA-Z0-9_-]+|\[\"?[a-zA-Z0-9_-]+\"?\])+)\}"
)
"""A value that Terraform knows only later: a token of cdktf, or a reference like ${aws_kms_key.lake.arn}. A policy variable of
IAM (${aws:username}, ${*}) is not allowed: IAM would evaluate it, and it could match many values."""
_MEANS_MORE = re.compile(r"[*?\s\x00-\x1f\x7f]|\$\{|\{\{|\}\}")


class CannotFill(ValueError):
    """A policy and its values do not match. `problems` lists every reason; `str()` prints one per line, without values."""

    def __init__(self, name: str, problems: Sequence[str]) -> None:
        self.name, self.problems = name, tuple(problems)
        super().__init__("\n".join(f"{name}: {problem}" for problem in self.problems))


def names() -> tuple[str, ...]:
    """Return the names of all documents, sorted."""
    return tuple(sorted(file.stem for file in _HERE.glob("*.json")))


def placeholders(name: str) -> frozenset[str]:
    """Return the placeholders of a document, exactly the values that `fill` needs."""
    return frozenset(_placeholders(_document(name)))


def fill(name: str, values: Mapping[str, Value], *, partition: str = "aws") -> dict[str, Any]:
    """Return the policy `name` with its placeholders filled, ready for `json.dumps`.

    The documents are those of AWS's partition `aws`. Their own ARNs follow `partition`, and in China the names of services do.
    A statement that allows something on an empty sequence of resources is omitted: it allows nothing. Raises `CannotFill`
    if a placeholder has no value or a value no placeholder, for a value that IAM would not read literally (a wildcard, a
    policy variable, white space, an empty text), if a statement that denies would have no resources, and if no statement
    is left.
    """
    document = _document(name, partition)
    wanted = placeholders(name)
    problems = [f"{{{{{missing}}}}} has no value" for missing in sorted(wanted - values.keys())]
    problems += [f"the value {unknown} has no placeholder" for unknown in sorted(values.keys() - wanted)]
    problems += [why for key in sorted(wanted & values.keys()) for why in _value_problems(key, values[key])]
    if problems:
        raise CannotFill(name, problems)
    statements = []
    for statement in document["Statement"]:
        sid, empty = statement["Sid"], sorted(key for key in set(_placeholders(statement)) if not values[key])
        if empty and statement["Effect"] != "Allow":
            problems.append(f"{sid} denies, and would have no resources: {', '.join(empty)} is empty")
        elif not empty:
            statements.append(_filled(statement, values))
    if problems or not statements:
        raise CannotFill(name, problems or ["no statement is left: all resources are empty"])
    return {**document, "Statement": statements}


def _document(name: str, partition: str = "aws") -> dict[str, Any]:
    file = _HERE / f"{name}.json"
    if name not in names():
        raise CannotFill(name, [f"the document does not exist. Name one of {', '.join(names())}"])
    text = file.read_text().replace("arn:aws:", f"arn:{partition}:")
    if partition == "aws-cn":
        text = text.replace(".{{region}}.amazonaws.com", ".{{region}}.amazonaws.com.cn")
    document: dict[str, Any] = json.loads(text)
    return document


def _placeholders(node: Any) -> Iterator[str]:
    match node:
        case str():
            yield from _PLACEHOLDER.findall(node)
        case list():
            for item in node:
                yield from _placeholders(item)
        case dict():
            for value in node.values():
                yield from _placeholders(value)


def _value_problems(key: str, value: Value) -> Iterator[str]:
    several = [value] if isinstance(value, str) else value
    for index, one in enumerate(several):
        where = key if isinstance(value, str) else f"{key}[{index}]"
        literal = one.place if isinstance(one, Below) else one
        if not literal:
            yield f"{where} is empty"
        elif _MEANS_MORE.search(REFERENCE.sub("", literal)):
            yield f"{where} means more than itself to IAM: it holds a wildcard, a variable or white space"


def _filled(node: Any, values: Mapping[str, Value]) -> Any:
    match node:
        case str():
            filled = _strings(node, values)
            is_list = any(not isinstance(values[key], str) for key in _PLACEHOLDER.findall(node))
            return filled if is_list else filled[0]
        case list():
            return [one for item in node for one in _many(_filled(item, values))]
        case dict():
            return {key: _filled(value, values) for key, value in node.items()}
    return node


def _many(filled: Any) -> list[Any]:
    return filled if isinstance(filled, list) else [filled]


def _strings(text: str, values: Mapping[str, Value]) -> list[str]:
    """Return the strings that replace one: one, or one per item of a list. Values are not searched for placeholders."""
    several = sorted({key for key in _PLACEHOLDER.findall(text) if not isinstance(values[key], str)})
    if len(several) > 1:
        raise AssertionError(f"a document holds two placeholders of several values in one string: {text}")
    rows = [{several[0]: one} for one in values[several[0]]] if several else [{}]
    return [_PLACEHOLDER.sub(lambda found, row=row: {**values, **row}[found[1]], text) for row in rows]  # type: ignore[misc]
