"""The prices of services, with date and source, and the assumptions about their use. The figures are in `prices.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("prices.json")


class NotAssumed(ValueError):
    """A given assumption has an unknown name or is no number."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """One number that is not declared anywhere. `is_given`: it is an input of this review instead of the table's."""

    value: Decimal
    meaning: str
    is_given: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The table of prices, by name. `gb_a_month` overrides the assumption of that name for single pipelines."""

    date: str
    region: str
    currency: str
    note: str
    hours: Decimal
    prices: Mapping[str, Decimal]
    assumptions: Mapping[str, Assumption]
    not_counted: str
    gb_a_month: Mapping[str, Decimal] = field(default_factory=dict)

    def price(self, name: str) -> Decimal:
        """Return the amount of a price."""
        return self.prices[name]

    def assumed(self, name: str) -> Decimal:
        """Return the value of an assumption."""
        return self.assumptions[name].value

    def gb_of(self, pipeline: str) -> Decimal:
        """Return how many GB a pipeline reads per month."""
        return self.gb_a_month.get(pipeline, self.assumed("gb_a_month"))


def price_table(given: Mapping[str, Any] | None = None) -> Prices:
    """Read the table, with the given assumptions instead of its own: `{"months_stored": 24, "pipelines": {"orders": 200}}`.

    `pipelines` maps names to GB per month. Raises `NotAssumed`.
    """
    table = json.loads(_FILE.read_text("utf-8"))
    replaced = dict(given or {})
    volumes = replaced.pop("pipelines", {})
    unknown = sorted(replaced.keys() - table["assumptions"].keys())
    if unknown or not isinstance(volumes, Mapping):
        names = ", ".join([*table["assumptions"], "pipelines"])
        raise NotAssumed(f"{', '.join(unknown) or 'pipelines'}: there is no such assumption; there are {names}")
    assumptions = {
        name: Assumption(_number(name, replaced.get(name, each["value"])), each["meaning"], is_given=name in replaced)
        for name, each in table.pop("assumptions").items()
    }
    prices = {name: Decimal(each["amount"]) for name, each in table.pop("prices").items()}
    gb_a_month = {str(name): _number(str(name), value) for name, value in volumes.items()}
    hours = Decimal(table.pop("hours_a_month"))
    return Prices(**table, hours=hours, prices=prices, assumptions=assumptions, gb_a_month=gb_a_month)


def _number(name: str, value: Any) -> Decimal:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise NotAssumed(f"{name}: {value!r} is no number") from None
    if not number.is_finite() or number < 0:
        raise NotAssumed(f"{name}: {value!r} is not a number from 0 on")
    return number
