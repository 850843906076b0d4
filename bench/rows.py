"""Seeded rows with the cardinalities of real topics. Each record gets `id` and `at` when it is sent."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

Row = dict[str, Any]

COUNTRIES = ("DE", "FR", "US", "GB", "ES", "IT", "NL", "PL", "SE", "AT", "CH", "DK", "BR", "IN", "JP", "CA", "MX", "AU")
KINDS = ("view", "click", "scroll", "search", "cart", "remove", "checkout", "pay", "refund", "login", "logout", "error")
STATUSES = ("NEW", "PAID", "PACKED", "SHIPPED", "DELIVERED", "RETURNED")
TIERS = ("BASIC", "PLUS", "PRO")
CITIES = tuple(
    f"{a}{b}"
    for a in ("Alt", "Neu", "Ober", "Unter", "Bad ", "Gross")
    for b in ("stadt", "dorf", "au", "hof", "feld", "berg", "bach", "heim")
)
WORDS = tuple(
    f"{a}{b}{c}" for a in "bdfgklmnprst" for b in ("a", "ei", "o", "u") for c in ("nd", "rt", "ll", "mp", "sk")
)
WIDE_COLUMNS = 98  # beside id and at


def _chooser(dice: random.Random, values: Sequence[Any]) -> Callable[[], Any]:
    weights = list(accumulate(1 / (rank + 3) for rank in range(len(values))))  # Zipf: like users, products and cities
    return lambda: dice.choices(values, cum_weights=weights)[0]


def light(dice: random.Random) -> Iterator[Row]:
    """Generate events of a web shop: 100,000 users, 12 kinds, a number."""
    user, kind = _chooser(dice, range(100_000)), _chooser(dice, KINDS)
    while True:
        yield {"user": user(), "kind": kind(), "value": round(dice.expovariate(0.1), 2), "ok": dice.random() < 0.97}


def orders(dice: random.Random) -> Iterator[Row]:
    """Generate orders with a customer, an address and one to four items of 20,000 products; one in eight has a coupon."""
    user, country, city, product = (_chooser(dice, v) for v in (range(100_000), COUNTRIES, CITIES, range(20_000)))
    status, tier = _chooser(dice, STATUSES), _chooser(dice, TIERS)
    while True:
        items = [
            {
                "sku": f"P{product():06d}",
                "quantity": min(1 + int(dice.expovariate(1.2)), 9),
                "price": dice.randrange(99, 20_000, 10) / 100,
            }
            for _ in range(dice.choices((1, 2, 3, 4), (55, 25, 13, 7))[0])
        ]
        yield {
            "user": {"id": user(), "country": country(), "tier": tier()},
            "status": status(),
            "items": items,
            "shipping": {"city": city(), "zip": f"{dice.randrange(10_000, 99_999)}", "express": dice.random() < 0.2},
            "total": round(sum(item["quantity"] * item["price"] for item in items), 2),
            "session": f"{dice.getrandbits(64):016x}",
            "coupon": f"C{dice.randrange(500):03d}" if dice.random() < 0.125 else None,
        }


def wide(dice: random.Random) -> Iterator[Row]:
    """Generate rows of a hundred columns, like an export of an old system; a tenth of the nullable values are null."""
    word, account = _chooser(dice, WORDS), _chooser(dice, range(10_000))
    make: dict[str, Callable[[], Any]] = {
        "small": lambda: dice.randrange(50),
        "large": lambda: dice.randrange(1 << 40),
        "ratio": dice.random,
        "word": word,
        "account": lambda: f"A{account():08d}",
        "maybe": lambda: None if dice.random() < 0.1 else dice.randrange(100_000),
        "flag": lambda: dice.random() < 0.3,
    }
    while True:
        yield {name: make[kind]() for name, kind in wide_columns()}


def wide_columns() -> list[tuple[str, str]]:
    """Return the names and the types of the wide row's columns."""
    kinds = ("small", "large", "ratio", "word", "account", "maybe", "flag")
    return [(f"c{number:02d}_{kinds[number % 7]}", kinds[number % 7]) for number in range(WIDE_COLUMNS)]
