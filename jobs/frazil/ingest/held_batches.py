"""Batches of a routed topic without a record for this table: their offsets are committed with those of a later batch.

A table of rare records would else get a snapshot for each batch of all others. A driver that ends before reads them again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from frazil.declaration import Pipeline
from frazil.ingest.one_batch import StagedBatch
from frazil.lake.ledger.next_offsets import Offsets

HOLD_SECONDS = 600.0
"""So long the offsets of batches without records may wait for one that has some."""


class HeldBatches:
    """The batches of one pipeline that are staged and not committed, as one; `clock` is in seconds since 1970."""

    def __init__(self, pipeline: Pipeline, clock: Callable[[], float]) -> None:
        self._pipeline, self._clock = pipeline, clock
        self._held: StagedBatch | None = None
        self._since = 0.0

    @property
    def end(self) -> Offsets | None:
        """The offsets after the held batches; None if nothing is held."""
        return self._held.request.end if self._held is not None else None

    @property
    def planned_on(self) -> Offsets | None:
        """The offsets that the table had when the first of them was planned; None if nothing is held."""
        return self._held.request.committed if self._held is not None else None

    @property
    def is_due(self) -> bool:
        """True if they are to be committed though no record came."""
        return self._held is not None and self._clock() - self._since >= HOLD_SECONDS

    def forget(self) -> None:
        """Drop them: they are read again."""
        self._held = None

    def take(self) -> StagedBatch | None:
        """Return them as one batch, to be committed now."""
        held, self._held = self._held, None
        return held

    def with_next(self, staged: StagedBatch) -> StagedBatch | None:
        """Return the batch to commit, the held ones in it; None if it is held, too."""
        held, since = self._held, self._since if self._held is not None else self._clock()
        if held is not None:
            first, committed = held.request.start, held.request.committed
            start = replace(first, at={**staged.request.start.at, **first.at})  # partitions may be new since then
            ids = tuple(dict.fromkeys((*held.request.schema_ids, *staged.request.schema_ids)))
            counts = held.request.counts.plus(staged.request.counts)
            request = replace(staged.request, start=start, committed=committed, counts=counts, schema_ids=ids)
            staged = replace(staged, request=request, began=held.began)
        self._held, self._since = (staged, since) if self._has_nothing(staged) else (None, 0.0)
        return None if self._held is not None and not self.is_due else self.take() or staged

    def _has_nothing(self, staged: StagedBatch) -> bool:
        """Return whether all records are other tables'. A table whose rows are replaced also says that no delete was missed."""
        if self._pipeline.shape.route is None or self._pipeline.write.replaces_rows:
            return False
        counts = staged.request.counts
        is_empty = staged.main.is_empty and staged.dead_letters is None and staged.changes is None
        return is_empty and counts.own == 0 and staged.request.accepted is None and not staged.request.windows
