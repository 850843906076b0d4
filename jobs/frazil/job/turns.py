"""Turns of the pipelines of one driver: few of them plan and stage small batches at once, and the stalest table comes first.

All at once would take turns on every core, and each would end late. A pipeline that waits plans its batch when it has its turn: it
has what came in meanwhile, so a backlog of many small topics is landed in fewer batches. Large batches take no turn: Spark shares
the cores among them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition

WAIT_SECONDS = 10.0
"""So long a pipeline waits at most: one that hangs in its turn, as on a registry, holds up no other for longer."""


class Turns:
    """The turns of one driver, at most so many at once. Safe to share between threads."""

    def __init__(self, most: int = 2) -> None:
        self._changed, self._most = Condition(), most
        self._waiting: list[tuple[float, int]] = []
        self._taken, self._numbers = 0, itertools.count()

    @contextmanager
    def turn(self, fresh_until: float) -> Iterator[Callable[[], None]]:
        """Wait until it is the turn of a pipeline whose table is as fresh as this; yield what ends the turn early."""
        me = (fresh_until, next(self._numbers))
        with self._changed:
            self._waiting.append(me)
            self._changed.wait_for(lambda: self._taken < self._most and min(self._waiting) == me, WAIT_SECONDS)
            self._waiting.remove(me)
            self._taken += 1
            self._changed.notify_all()
        ended = False

        def end() -> None:
            nonlocal ended
            with self._changed:
                self._taken -= not ended
                ended = True
                self._changed.notify_all()

        try:
            yield end
        finally:
            end()
