"""The size of policies: IAM limits their characters, so the policy of a role with many tables is split into parts.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html: white space is not counted, a managed policy has
at most 6,144 characters, and a role at most ten of them (twenty on request). Inline policies share 10,240.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from policies.documents.filling import REFERENCE, CannotFill

MANAGED_LIMIT = 6_144
_KNOWN_LATER = "x" * 128
"""The assumed length of a value that Terraform fills in: longer than any ARN of Frazil's resources."""


def characters(document: Mapping[str, Any]) -> int:
    """Count the characters of a policy as IAM does, without white space. Unknown values count with their greatest length."""
    return len(REFERENCE.sub(_KNOWN_LATER, json.dumps(document, separators=(",", ":"), ensure_ascii=False)))


def split(document: Mapping[str, Any], limit: int = MANAGED_LIMIT) -> tuple[dict[str, Any], ...]:
    """Split a policy into parts of at most `limit` characters that together allow the same.

    A statement that is too long is repeated, with a share of its resources or values in each copy. Glue needs permission on
    a catalog, a database and a table, but IAM looks for each in all parts, so a share may hold any of them. A part that
    denies a request decides, whatever another allows. Raises `CannotFill` if a single resource is too long, and for a document
    that names principals, which cannot be split.
    """
    if any("Principal" in each for each in document["Statement"]):
        raise CannotFill("split", ["a policy that names principals cannot be split"])
    parts: list[dict[str, Any]] = []
    for statement in document["Statement"]:
        for piece in _pieces(document, statement, limit):
            longer = [_with(part, piece) for part in parts]
            room = next((index for index, part in enumerate(longer) if characters(part) <= limit), None)
            if room is None:
                parts.append({**document, "Statement": [piece]})
            else:
                parts[room] = longer[room]
    return tuple(parts)


def _with(part: Mapping[str, Any], statement: Mapping[str, Any]) -> dict[str, Any]:
    return {**part, "Statement": [*part["Statement"], statement]}


def _pieces(document: Mapping[str, Any], statement: Mapping[str, Any], limit: int) -> Sequence[dict[str, Any]]:
    """Halve a statement until each piece fits. Each piece has a number in its Sid, so that Sids stay unique."""
    if characters({**document, "Statement": [statement]}) <= limit:
        return [dict(statement)]
    pieces: list[dict[str, Any]] = []
    pending = _halves(statement)
    while pending:
        piece = {**pending.pop(0), "Sid": f"{statement['Sid']}{len(pieces) + 1}"}
        if characters({**document, "Statement": [piece]}) <= limit:
            pieces.append(piece)
        else:
            pending[:0] = _halves(piece)
    return pieces


def _halves(statement: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return two statements that together allow the same, each with half of the longest list of resources or values."""
    length, path, values = max(((len(values), path, values) for path, values in lists(statement)), default=(0, (), []))
    if length < 2:
        raise CannotFill("split", [f"{statement['Sid']} does not fit"])
    middle = length // 2
    return [replaced(statement, path, half) for half in (values[:middle], values[middle:])]


def lists(statement: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Yield the lists of resources and of conditions' values of which any value is enough, each with its path.

    So they can be divided and joined. All values of an operator that negates count.
    """
    if isinstance(statement.get("Resource"), list):
        yield ("Resource",), statement["Resource"]
    for operator, keys in (statement.get("Condition") or {}).items():
        if "Not" not in operator and ":" not in operator:
            yield from ((("Condition", operator, key), each) for key, each in keys.items() if isinstance(each, list))


def replaced(node: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """Return a statement with another value at a path."""
    first, *rest = path
    return {**node, first: replaced(node[first], rest, value) if rest else value}
