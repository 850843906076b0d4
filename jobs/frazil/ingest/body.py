"""Body: how the bytes behind a frame become a row, in one step or in two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

Step = Callable[[Column], Column]


@dataclass(frozen=True, slots=True)
class Body:
    """How one kind of bytes is decoded: `parse` them once, and make the row of what that gives; the row is the table's columns,
    then `_decoded`. Without `row`, what is parsed is the row.

    The two steps are two projections where that is possible: each use of a column that is an expression repeats the
    expression, unless the column stands in a projection of its own.
    """

    parse: Step
    row: Step | None = None

    def at_once(self, value: Column) -> Column:
        """Both steps as one expression, parsed once: what is parsed is bound to a lambda's variable, which is interpreted and so
        slower than a projection.
        """
        if self.row is None:
            return self.parse(value)
        return F.transform(F.array(self.parse(value)), self.row)[0]
