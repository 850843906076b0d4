"""Reports of a table's schema: each change, and each version that does not land, once."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.decode.decoded_columns import schema_id_of
from frazil.ingest.reporting.events import Event, Reporter
from frazil.schemas.evolution.schema_changes import Change
from frazil.schemas.json.json_schema import TO_LAND

MOST_REPORTED = 50
"""Changes that one event lists, and incompatible versions that are reported at once."""


class SchemaReports:
    """Reports on the schemas of one pipeline."""

    def __init__(self, report: Reporter) -> None:
        self._report = report
        self._reported: set[tuple[int, str]] = set()  # writers, and what was reported of them
        self._omitted: set[tuple[str, ...]] = set()

    def evolved(self, changes: Sequence[Change]) -> None:
        """Report what was changed, if anything was."""
        if changes:
            more = [f"and {len(changes) - MOST_REPORTED} more"] if len(changes) > MOST_REPORTED else []
            self._report(Event.SCHEMA_EVOLVED, changes=[*(str(c) for c in changes[:MOST_REPORTED]), *more])

    def incompatible(self, found: Sequence[tuple[int, str]]) -> None:
        """Report why versions do not land, once: of many at once the last ones, which are the newest versions."""
        new = [each for each in dict.fromkeys(found) if each not in self._reported]
        self._reported |= set(new)
        for number, message in new[-MOST_REPORTED:]:
            self._report(Event.SCHEMA_INCOMPATIBLE, schema_id=schema_id_of(number), message=message)

    def omitted(self, found: Sequence[tuple[int, tuple[str, ...]]]) -> None:
        """Report which properties the schemas describe that land in no column; once what several schemas have alike."""
        for number, properties in found:
            if properties not in self._omitted:
                self._omitted.add(properties)
                shown = properties[:MOST_REPORTED]
                self._report(
                    Event.PROPERTIES_OMITTED,
                    schema_id=schema_id_of(number),
                    properties=list(shown),
                    message=f"properties of the schema that land in no column: {'; '.join(shown)}. {TO_LAND}",
                )
