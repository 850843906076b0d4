"""Several policies as one that allows exactly the same, so that a moved statement is no difference."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from policies.evaluate import Document, many, statements

_PIECE = re.compile(r"\d+$")


def gathered(documents: Iterable[Document]) -> dict[str, Any]:
    """Combine several policies into one that allows exactly the same.

    Two statements that differ in one list only, of resources or of a condition's values, are merged into one with both lists.
    """
    pending = [_sorted(each) for document in documents for each in statements(document)]
    kept: list[dict[str, Any]] = []
    while pending:
        statement = pending.pop(0)
        for other in kept:
            joined = _joined(other, statement)
            if joined is not None:
                kept.remove(other)
                pending.insert(0, joined)
                break
        else:
            kept.append(statement)
    return {"Version": "2012-10-17", "Statement": kept}


def _sorted(statement: Document) -> dict[str, Any]:
    """Return a statement with sorted lists, and with a single resource as a list."""
    made = dict(statement)
    if "Resource" in made:
        made["Resource"] = sorted(map(str, many(made["Resource"])))
    if isinstance(made.get("Condition"), Mapping):
        made["Condition"] = {
            operator: {
                key: sorted(map(str, value)) if isinstance(value, list) else value for key, value in keys.items()
            }
            for operator, keys in made["Condition"].items()
            if isinstance(keys, Mapping)
        }
    return made


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any] | None:
    """Merge two statements that allow, if they differ in at most one list."""
    names = [str(each.get("Sid", "")) for each in (one, other)]
    if (
        one.get("Effect") != "Allow"
        or other.get("Effect") != "Allow"
        or _PIECE.sub("", names[0]) != _PIECE.sub("", names[1])
    ):
        return None
    left, right = _lists(one), _lists(other)
    if left.keys() != right.keys() or _bare(one) != _bare(other):
        return None
    differing = [path for path in left if left[path] != right[path]]
    if len(differing) > 1:
        return None
    made: dict[str, Any] = json.loads(json.dumps({**one, **({"Sid": _PIECE.sub("", names[0])} if names[0] else {})}))
    for path in differing:
        node = made
        for step in path[:-1]:
            node = node[step]
        node[path[-1]] = sorted({*left[path], *right[path]})
    return made


def _lists(statement: Mapping[str, Any]) -> dict[tuple[str, ...], Sequence[str]]:
    """Return the lists of which any value is enough."""
    found: dict[tuple[str, ...], Sequence[str]] = {}
    if isinstance(statement.get("Resource"), list):
        found["Resource",] = statement["Resource"]
    for operator, keys in (statement.get("Condition") or {}).items():
        if "Not" not in operator and ":" not in operator:
            found |= {("Condition", operator, key): value for key, value in keys.items() if isinstance(value, list)}
    return found


def _bare(statement: Mapping[str, Any]) -> str:
    """Return the statement without those lists and without its name."""
    made: dict[str, Any] = json.loads(json.dumps({key: value for key, value in statement.items() if key != "Sid"}))
    for path in _lists(statement):
        node = made
        for step in path[:-1]:
            node = node[step]
        node[path[-1]] = []
    return json.dumps(made, sort_keys=True)
