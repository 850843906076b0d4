"""The shape of a table's rows: which records of the topic become rows, and of which columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Annotated

from frazil.declaration.checks.column_rules import KEY_COLUMN_PATTERN, key_column_refusal
from frazil.declaration.checks.constraints import Rule, notation, seconds_of
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import Problem
from frazil.declaration.checks.select_list import Selected, select_list
from frazil.declaration.checks.sql_expressions import RowExpression, row_expression

_SPAN = notation(seconds_of)
_NAME = Rule(key_column_refusal, {"pattern": KEY_COLUMN_PATTERN})


@declared
class EventTime:
    """The time of an event, and how far from its record's time it may be, such as `"30 days"`. Null is not compared."""

    column: Annotated[str, "The column, a date or a timestamp.", _NAME] = field(kw_only=False)
    oldest: Annotated[str | None, "An event that is longer before its record is rejected (`event_time`).", _SPAN] = None
    newest: Annotated[str | None, "An event that is longer after its record is rejected.", _SPAN] = None
    lateness: Annotated[str | None, "Rows of events that are longer before their record are counted.", _SPAN] = None

    def _contradictions(self) -> Iterator[Problem]:
        if self.oldest is self.newest is self.lateness is None:
            yield Problem("", "no bound is declared", "Write oldest, newest or lateness, or remove event_time")


@declared
class Shape:
    """The shape of rows before they land. An expression is SQL over its columns; the page shape-rows says what it may hold.

    A record for which an expression fails is rejected (`transform_failed`), as `on_error` says.
    """

    where: Annotated[
        str | None,
        "Which records land: those for which this is true. With upserts any other one deletes the row of its key.",
        notation(row_expression),
    ] = None

    select: Annotated[
        str | None,
        "The columns of the table, of those of the topic: with names, expressions and stars. Default: all.",
        notation(select_list),
    ] = None

    event_time: Annotated[EventTime | None, "Bounds of the time of an event."] = None

    @property
    def condition(self) -> RowExpression | None:
        """The expression of `where`."""
        return None if self.where is None else RowExpression(self.where)

    @property
    def selected(self) -> tuple[Selected, ...]:
        """The elements of `select`; empty if none is declared."""
        return () if self.select is None else select_list(self.select)
