"""Size: IAM bounds a policy's characters; a role of many tables gets its policy in several parts.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html: white space is not counted, a managed policy has
at most 6,144 characters, and a role at most ten of them (twenty, if asked for). Inline policies share 10,240.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from policies.documents.filling import CannotFill

MANAGED_LIMIT = 6_144


def characters(document: Mapping[str, Any]) -> int:
    """The characters of a policy as IAM counts them, if it is written without white space."""
    return len(json.dumps(document, separators=(",", ":"), ensure_ascii=False))


def split(document: Mapping[str, Any], limit: int = MANAGED_LIMIT) -> tuple[dict[str, Any], ...]:
    """The policy as parts of at most `limit` characters that together allow the same.

    Statements stay whole where they fit; one that is too long is repeated with a share of its resources in each. Glue asks for a
    catalog, a database and a table, but each of them is looked for in all parts, so a share may hold any of them. Raises
    `CannotFill` if even one resource is too long, and for a document that denies or names principals: such documents hang
    on one bucket or role, in one piece.
    """
    if any(each["Effect"] != "Allow" or "Principal" in each for each in document["Statement"]):
        raise CannotFill("split", ["only policies that allow, and name no principal, can be had in parts"])
    parts: list[dict[str, Any]] = []
    for statement in document["Statement"]:
        for piece in _pieces(document, statement, limit):
            if parts and characters(_with(parts[-1], piece)) <= limit:
                parts[-1] = _with(parts[-1], piece)
            else:
                parts.append({**document, "Statement": [piece]})
    return tuple(parts)


def _with(part: Mapping[str, Any], statement: Mapping[str, Any]) -> dict[str, Any]:
    return {**part, "Statement": [*part["Statement"], statement]}


def _pieces(document: Mapping[str, Any], statement: Mapping[str, Any], limit: int) -> Sequence[dict[str, Any]]:
    """The statement, halved until each piece fits alone. Sids stay unique within a part: a piece is told by its number."""
    if characters({**document, "Statement": [statement]}) <= limit:
        return [dict(statement)]
    resources = statement["Resource"]
    if isinstance(resources, str) or len(resources) < 2:
        raise CannotFill("split", [f"{statement['Sid']} does not fit {limit} characters"])
    pieces: list[dict[str, Any]] = []
    pending = [list(resources[: len(resources) // 2]), list(resources[len(resources) // 2 :])]
    while pending:
        share = pending.pop(0)
        piece = {**statement, "Sid": f"{statement['Sid']}{len(pieces) + 1}", "Resource": share}
        if characters({**document, "Statement": [piece]}) <= limit:
            pieces.append(piece)
        elif len(share) < 2:
            raise CannotFill("split", [f"{statement['Sid']} does not fit {limit} characters"])
        else:
            pending[:0] = [share[: len(share) // 2], share[len(share) // 2 :]]
    return pieces
