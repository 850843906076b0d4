"""Prices: what things cost, with date and source, and what is assumed of their use. The figures are in `prices.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("prices.json")


class NotAssumed(ValueError):
    """What was given instead of an assumption is none: its name is not known, or it is no number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """One price, in the currency of its table. `source` says where it was read, or that it is unverified."""

    amount: Decimal
    unit: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """One number that nothing declares. `is_given`: it was told to this review, and is not the table's."""

    value: Decimal
    meaning: str
    is_given: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The table. `gb_a_month` overrides the assumption of that name for single pipelines."""

    date: str
    region: str
    currency: str
    note: str
    hours: Decimal
    prices: Mapping[str, Price]
    assumptions: Mapping[str, Assumption]
    not_counted: str
    gb_a_month: Mapping[str, Decimal] = field(default_factory=dict)

    def price(self, name: str) -> Decimal:
        """The amount of a price."""
        return self.prices[name].amount

    def assumed(self, name: str) -> Decimal:
        """The value of an assumption."""
        return self.assumptions[name].value

    def gb_of(self, pipeline: str) -> Decimal:
        """GB that a pipeline reads a month."""
        return self.gb_a_month.get(pipeline, self.assumed("gb_a_month"))


def price_table(given: Mapping[str, Any] | None = None) -> Prices:
    """The table, with assumptions replaced by what is given: `{"months_stored": 24, "pipelines": {"orders": 200}}`.

    Under `pipelines` are GB a month, by name. Raises `NotAssumed`.
    """
    told = json.loads(_FILE.read_text("utf-8"))
    replaced = dict(given or {})
    volumes = replaced.pop("pipelines", {})
    unknown = sorted(replaced.keys() - told["assumptions"].keys())
    if unknown or not isinstance(volumes, Mapping):
        names = ", ".join([*told["assumptions"], "pipelines"])
        raise NotAssumed(f"{', '.join(unknown) or 'pipelines'}: there is no such assumption; there are {names}")
    assumptions = {
        name: Assumption(
            value=_number(name, replaced.get(name, each["value"])), meaning=each["meaning"], is_given=name in replaced
        )
        for name, each in told["assumptions"].items()
    }
    return Prices(
        date=told["date"],
        region=told["region"],
        currency=told["currency"],
        note=told["note"],
        hours=Decimal(told["hours_a_month"]),
        prices={
            name: Price(amount=Decimal(each["amount"]), unit=each["unit"], source=each["source"])
            for name, each in told["prices"].items()
        },
        assumptions=assumptions,
        not_counted=told["not_counted"],
        gb_a_month={str(name): _number(str(name), value) for name, value in volumes.items()},
    )


def _number(name: str, value: Any) -> Decimal:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise NotAssumed(f"{name}: {value!r} is no number") from None
    if not number.is_finite() or number < 0:
        raise NotAssumed(f"{name}: {value!r} is not a number from 0 on")
    return number
