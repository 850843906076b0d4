"""Size: IAM bounds a policy's characters; a role of many tables gets its policy in several parts.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html: white space is not counted, a managed policy has
at most 6,144 characters, and a role at most ten of them (twenty, if asked for). Inline policies share 10,240.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from policies.documents.filling import REFERENCE, CannotFill

MANAGED_LIMIT = 6_144
_KNOWN_LATER = "x" * 128
"""What Terraform fills in counts as this: longer than any ARN of ours."""


def characters(document: Mapping[str, Any]) -> int:
    """The characters of a policy as IAM counts them, if it is written without white space: of what is known later, the most
    that it may become."""
    return len(REFERENCE.sub(_KNOWN_LATER, json.dumps(document, separators=(",", ":"), ensure_ascii=False)))


def split(document: Mapping[str, Any], limit: int = MANAGED_LIMIT) -> tuple[dict[str, Any], ...]:
    """The policy as parts of at most `limit` characters that together allow the same.

    Statements stay whole where they fit; one that is too long is repeated, with a share of its resources or values in each.
    Glue asks for a catalog, a database and a table, but each of them is looked for in all parts, so a share may hold any of
    them. What one part denies is denied, whatever another allows. Raises `CannotFill` if even one resource is too long, and
    for a document that names principals: such a document hangs on one bucket or role, in one piece.
    """
    if any("Principal" in each for each in document["Statement"]):
        raise CannotFill("split", ["only policies that name no principal can be had in parts"])
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
    """The statement, halved until each piece fits alone. Sids stay unique: a piece is told by its number."""
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
    """Two statements that together allow what this one does: each with half of its longest list, of resources or values.

    A condition holds when any of its values fits, so values can be shared out like resources; of an operator that negates they
    cannot.
    """
    lists: list[tuple[int, tuple[str, ...], list[Any]]] = []
    if isinstance(statement["Resource"], list):
        lists.append((len(statement["Resource"]), ("Resource",), statement["Resource"]))
    for operator, keys in statement.get("Condition", {}).items():
        if "Not" not in operator and ":" not in operator:
            lists += [
                (len(values), ("Condition", operator, key), values)
                for key, values in keys.items()
                if isinstance(values, list)
            ]
    length, path, values = max(lists, default=(0, (), []))
    if length < 2:
        raise CannotFill("split", [f"{statement['Sid']} does not fit"])
    middle = length // 2
    return [_replaced(statement, path, half) for half in (values[:middle], values[middle:])]


def _replaced(node: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    first, *rest = path
    return {**node, first: _replaced(node[first], rest, value) if rest else value}
