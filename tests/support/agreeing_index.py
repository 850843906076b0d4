"""An index of keys that is compared with the search each time it is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from frazil.lake.delete_files.staged_deletes import Found, StagedDeletes
from frazil.lake.iceberg_java import Iceberg
from frazil.upsert.index_resolver import Cost, IndexResolver
from frazil.upsert.resolver_protocol import BatchKeys, Head, KeyPositionResolver, Remembered
from frazil.upsert.scan_resolver import ScanResolver
from tests.support.jobs import job


class Free(Cost):
    """An index is made at the first batch, and at the next one after it was dropped."""

    def build_seconds(self, rows: int) -> float:
        """Return no time."""
        return 0.0


class AgreeingIndex(IndexResolver):
    """An index that has the search find the same, and counts what happens: `built`, `dropped` with the reasons, and `answers`."""

    def __init__(
        self,
        scan: KeyPositionResolver,
        context: Any,
        report: Callable[[str, Mapping[str, Any]], None] = lambda *_: None,
        cost: Cost | None = None,
        folder: str | None = None,
    ) -> None:
        self.built: list[Mapping[str, Any]] = []
        self.dropped: list[str] = []
        self.answers = self.searched = 0

        def noted(event: str, facts: Mapping[str, Any]) -> None:
            if event == "built":
                self.built.append(facts)
            else:
                self.dropped.append(str(facts["why"]))
            report(event, facts)

        self._search = scan
        super().__init__(_Noting(scan, self), context, noted, cost or Free(), folder)

    def find(self, head: Head, keys: BatchKeys, remembered: Remembered = Remembered()) -> Found:  # noqa: B008 # frozen
        """Return what the index finds; assert that the search finds it too."""
        before = self.searched
        found = super().find(head, keys, remembered)
        if self.searched == before:
            self.answers += 1
            assert facts(found) == facts(self._search.find(head, keys, remembered))
        return found


def agreeing(iceberg: Iceberg, table: str, cost: Cost | None = None) -> AgreeingIndex:
    """Return an index of a table's keys."""
    return AgreeingIndex(ScanResolver(iceberg, table), job(iceberg), cost=cost)


class _Noting:
    """A search that the index counts."""

    def __init__(self, scan: KeyPositionResolver, index: AgreeingIndex) -> None:
        self._scan, self._index = scan, index

    def find(self, head: Head, keys: BatchKeys, remembered: Remembered) -> Found:
        self._index.searched += 1
        return self._scan.find(head, keys, remembered)

    def wrote(self, deletes: StagedDeletes) -> None:
        """See `KeyPositionResolver`."""


def facts(found: Found) -> dict[str, Any]:
    """Return all that a search found, in values that can be compared."""
    at = {path: positions.tolist() for path, positions in found.at.items()}
    return {"at": at, "counts": (found.updated, found.deleted, found.hash, found.moved, found.rows)}
