"""An index of keys that is compared with the search each time it is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from frazil.lake.deletes.positions import Found
from frazil.lake.deletes.staged_deletes import StagedDeletes
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.key_index.indexed_search import Cost, IndexedSearch
from tests.support.jobs import job


class Free(Cost):
    """An index is made at the first batch, and at the next one after it was dropped."""

    def build_seconds(self, rows: int) -> float:
        """Return no time."""
        return 0.0


@dataclass
class AgreeingIndex:
    """An index that has the search find the same, and counts what happens: `built`, `dropped` with the reasons, and `answers`."""

    iceberg: Iceberg
    cost: Cost = field(default_factory=Free)
    built: list[Mapping[str, Any]] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    answers: int = 0

    def __post_init__(self) -> None:
        context = job(self.iceberg)
        self.index = IndexedSearch(
            self.iceberg, clock=context.clock, new_id=context.new_id, report=self._report, cost=self.cost
        )

    def _report(self, event: str, facts: Mapping[str, Any]) -> None:
        if event == "built":
            self.built.append(facts)
        else:
            self.dropped.append(str(facts["why"]))

    def find(self, *asked: Any, search: Callable[[], Found], **named: Any) -> Found:
        """Return what the index finds; assert that the search finds it too."""
        searched: list[Found] = []

        def noted() -> Found:
            searched.append(search())
            return searched[-1]

        found = self.index.find(*asked, search=noted, **named)
        if not searched:
            self.answers += 1
            assert facts(found) == facts(search())
        return found

    def made(self, deletes: StagedDeletes) -> None:
        """Hand the deletes on."""
        self.index.made(deletes)


def facts(found: Found) -> dict[str, Any]:
    """Return all that a search found, in values that can be compared."""
    at = {path: positions.tolist() for path, positions in found.at.items()}
    return {"at": at, "counts": (found.updated, found.deleted, found.hash, found.moved, found.rows)}
