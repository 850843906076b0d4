"""Requests of commits as figures: means by how they are billed, their price, and how many wait for one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from statistics import median
from typing import Any

from policies.review.prices import Prices

SKIPPED = 5
"""Commits after a start that do not count: code compiles, and the tag of the first one is new."""
WRITES, READS, FREE, GLUE = "writes", "reads", "free", "Glue"
_BILLED = {
    "PUT": WRITES,
    "LIST": WRITES,
    "multipart": WRITES,
    "GET": READS,
    "HEAD": READS,
    "DELETE": FREE,
    "Glue": GLUE,
}


def billed(requests: Mapping[str, float]) -> dict[str, float]:
    """Return the requests by how they are billed."""
    sums = dict.fromkeys((WRITES, READS, FREE, GLUE), 0.0)
    for name, count in requests.items():
        sums[_BILLED[name.partition(" ")[0]]] += count
    return sums


def billed_of_a_commit(found: Mapping[str, Any]) -> dict[str, float]:
    """Return the mean requests of a commit by how they are billed: a month's bill has the mean, not the median."""
    counted = [billed(each["requests"]) for each in found["commits"][SKIPPED:]]
    return {how: sum(each[how] for each in counted) / len(counted) for how in counted[0]}


def price(requests: Mapping[str, float], prices: Prices) -> Decimal:
    """Return what billed requests cost. Glue's first million requests a month are free, and count as if they were not."""
    return (
        Decimal(requests[WRITES]) / 1000 * prices.price("s3_put_1000")
        + Decimal(requests[READS]) / 1000 * prices.price("s3_get_1000")
        + Decimal(requests[GLUE]) / 1_000_000 * prices.price("glue_million_requests")
    )


def in_series(found: Mapping[str, Any]) -> float:
    """Return how many requests of a commit wait for one another: what a delay of each adds to the commit, over the delay."""
    walls = [_wall(found["commits"][SKIPPED:]), _wall(found["delayed"])]
    return max(walls[1] - walls[0], 0.0) / float(found["delay_seconds"])


def _wall(commits: Sequence[Mapping[str, Any]]) -> float:
    return float(median(each["wall"] for each in commits))
