"""One look at the offsets of all topics that a run follows, for the pipelines that have nothing to read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from frazil.clients.kafka import Asked, Kafka, TopicOffsets
from frazil.declaration.options import Isolation
from frazil.errors import ServiceUnavailable

Seen = tuple[str, tuple[tuple[int, int, int, int | None], ...]]
"""A topic's id, and of each partition its number, first and stable offset, and the leader's epoch."""


class OffsetLooks:
    """Looks at topics for many pipelines, in three round trips for all of them. Safe to share between threads.

    An answer is at most half of `every` seconds old, so a pipeline that asks every so often sees a record within one and a half.
    """

    def __init__(self, kafka: Kafka, every: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._kafka, self._longest, self._clock = kafka, every / 2, clock
        self._lock = threading.Lock()
        self._asked, self._found = set[tuple[str, Isolation]](), Asked()
        self._at = float("-inf")

    def of(self, topic: str, isolation: Isolation) -> Seen | None:
        """Return what a topic has; None if that is not known: whoever asks the topic by itself learns why."""
        with self._lock:
            is_new = (topic, isolation) not in self._asked
            self._asked.add((topic, isolation))
            if is_new or self._clock() - self._at >= self._longest:
                try:
                    self._found = self._kafka.offsets_of(self._asked)
                except ServiceUnavailable:
                    self._found = {}
                self._at = self._clock()  # a slow answer is one for all that wait for it
            found = self._found.get((topic, isolation))
        if not isinstance(found, TopicOffsets):
            return None
        spans = ((p, one.earliest, one.stable, one.leader_epoch) for p, one in sorted(found.spans.items()))
        return found.topic_id, tuple(spans)
