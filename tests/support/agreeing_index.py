"""An index of keys that is compared with the search each time it is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from frazil.lake.delete_files.staged_deletes import Found
from frazil.lake.iceberg_java import Iceberg
from frazil.upsert.index_resolver import Cost, IndexedSearch
from tests.support.jobs import job


class Free(Cost):
    """An index is made at the first batch, and at the next one after it was dropped."""

    def build_seconds(self, rows: int) -> float:
        """Return no time."""
        return 0.0


class AgreeingIndex(IndexedSearch):
    """An index that has the search find the same, and counts what happens: `built`, `dropped` with the reasons, and `answers`."""

    def __init__(self, iceberg: Iceberg, cost: Cost | None = None, **named: Any) -> None:
        context, report = job(iceberg), named.pop("report", lambda *_: None)
        self.built: list[Mapping[str, Any]] = []
        self.dropped: list[str] = []
        self.answers = 0

        def noted(event: str, facts: Mapping[str, Any]) -> None:
            if event == "built":
                self.built.append(facts)
            else:
                self.dropped.append(str(facts["why"]))
            report(event, facts)

        own = {"clock": context.clock, "new_id": context.new_id, "report": noted, "cost": cost or Free()}
        super().__init__(iceberg, **{**own, **named})

    def find(self, *asked: Any, search: Callable[[], Found], **named: Any) -> Found:
        """Return what the index finds; assert that the search finds it too."""
        searched: list[Found] = []

        def noted() -> Found:
            searched.append(search())
            return searched[-1]

        found = super().find(*asked, search=noted, **named)
        if not searched:
            self.answers += 1
            assert facts(found) == facts(search())
        return found


def facts(found: Found) -> dict[str, Any]:
    """Return all that a search found, in values that can be compared."""
    at = {path: positions.tolist() for path, positions in found.at.items()}
    return {"at": at, "counts": (found.updated, found.deleted, found.hash, found.moved, found.rows)}
