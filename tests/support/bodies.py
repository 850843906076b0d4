"""A body decoded by one expression, where a test has no frame of records."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.decode.decoder import Body


def at_once(body: Body, value: Column) -> Column:
    """Return all steps of the thorough body as one expression, each done once: its result is bound to a lambda's variable."""
    return _bound((value,), (body.thorough or body).steps)


def _bound(given: tuple[Column, ...], steps: tuple[Callable[..., Column], ...]) -> Column:
    made = steps[0](*given)
    if len(steps) == 1:
        return made
    return F.transform(F.array(made), lambda one: _bound((*given, one), steps[1:]))[0]
