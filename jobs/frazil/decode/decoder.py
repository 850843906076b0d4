"""A decoder: the steps that convert the bytes behind a frame to a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

Step = Callable[[Column], Column]


@dataclass(frozen=True, slots=True)
class Decoder:
    """How one kind of bytes is decoded: in steps. Each step makes a column of the bytes and of the columns of all earlier steps;
    the last one makes the row: the table's columns, then `_decoded`.

    Each step is a projection of its own where that is possible: a use of a column that is an expression repeats the expression,
    and Spark interprets everything below an expression that it interprets. Two uses keep Spark from merging two projections.

    `thorough` makes rows of some bodies that this one rejects, at more cost (for JSON a third); None if there are no such bodies.
    `is_framed` says of bytes of a declared Avro schema that they are a registry's frame and a body; None for other decoders.
    """

    steps: tuple[Callable[..., Column], ...]
    thorough: Decoder | None = None
    is_framed: Step | None = None

    def at_once(self, value: Column) -> Column:
        """Return all steps of the thorough body as one expression, each done once.

        A step's result is bound to a lambda's variable, which Spark interprets; so this is slower than projections.
        """
        return _bound((value,), (self.thorough or self).steps)


def _bound(given: tuple[Column, ...], steps: tuple[Callable[..., Column], ...]) -> Column:
    made = steps[0](*given)
    if len(steps) == 1:
        return made
    return F.transform(F.array(made), lambda one: _bound((*given, one), steps[1:]))[0]
