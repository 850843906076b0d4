"""Body: how the bytes behind a frame become a row, step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

Step = Callable[[Column], Column]


@dataclass(frozen=True, slots=True)
class Body:
    """How one kind of bytes is decoded: in steps, each of which makes a column of the last one's, and the last one the row: the
    table's columns, then `_decoded`.

    Each step is a projection of its own where that is possible: a use of a column that is an expression repeats the expression,
    and what stands below one that Spark interprets is interpreted with it. Two uses keep Spark from merging two projections.
    """

    steps: tuple[Step, ...]

    def at_once(self, value: Column) -> Column:
        """All steps as one expression, each done once: what a step gives is bound to a lambda's variable, which is interpreted
        and so slower than a projection.
        """
        first, *others = self.steps
        return reduce(lambda given, step: F.transform(F.array(given), step)[0], others, first(value))
