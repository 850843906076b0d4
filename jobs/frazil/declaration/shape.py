"""The shape of a table's rows: which records of the topic become rows."""

from __future__ import annotations

from typing import Annotated

from frazil.declaration.checks.constraints import notation
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.sql_expressions import RowExpression, row_expression


@declared
class Shape:
    """How a row is shaped before it lands. An expression is SQL over its columns; the page shape-rows says what it may hold.

    A record for which an expression fails is rejected (`transform_failed`), as `on_error` says.
    """

    where: Annotated[
        str | None,
        "Which records land: those for which this is true. With upserts any other one deletes the row of its key.",
        notation(row_expression),
    ] = None

    @property
    def condition(self) -> RowExpression | None:
        """The expression of `where`."""
        return None if self.where is None else RowExpression(self.where)
