"""The effect of one changed field of a declaration on an existing table, as a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """The effect of a change on rows.

    `stops`: the pipeline stops until an operator decides. `left`: the table stays, and Frazil no longer writes to it.
    `rebuild`: an existing table does not follow; only a rebuilt table has the change. `from_now_on`: rows that land later have
    the change, existing rows stay as they are. `made`: a missing table is created. `upkeep`: no row changes.
    """

    STOPS = "stops"
    LEFT = "left"
    REBUILD = "rebuild"
    FROM_NOW_ON = "from_now_on"
    MADE = "made"
    UPKEEP = "upkeep"


def never(before: Any, after: Any) -> bool:
    """Return false."""
    return False


def nothing(before: Any, after: Any) -> str:
    """Return no words."""
    return ""


def always(before: Any, after: Any) -> bool:
    """Return true."""
    return True


@dataclass(frozen=True, slots=True)
class FieldEffect:
    """The effect of one changed field; `is_dangerous` judges the old and the new value, `more` says what these alone show."""

    outcome: Outcome
    what: str
    is_dangerous: Callable[[Any, Any], bool] = never
    more: Callable[[Any, Any], str] = nothing

    def said(self, before: Any, after: Any) -> str:
        """Return the effect in words."""
        return "; ".join(filter(None, (self.what, self.more(before, after))))
