"""The base of all errors that stop a pipeline until an operator decides, and the decisions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from frazil.errors.frazil_error import FrazilError

EVENTS = {
    "topic-recreated": "lands the new topic from its beginning",
    "log-truncated": "continues and skips the records that replaced others",
    "log-truncated-replay": "lands the records that replaced others",
    "offsets-lost": "records the loss and continues after it",
    "rolled-back-replay": "lands the undone records again, or restores the dead letters",
    "rolled-back-hold": "leaves the table as it is and continues",
    "ledger-lost": "derives the offsets from the rows",
    "counts-recount": "counts the rows and reduces the number of gaps",
    "rejected-records": "keeps these records as dead letters and lands the others",
    "rows-deleted": "counts the rows that another engine deleted as deleted",
    "rejected-share": "lands the records that the topic holds, whatever share is rejected",
    "late-records": "leaves out the late records, whatever share of those that the topic holds they are",
    "keys-moved": "lands what the topic holds by the times of its records, then takes each key from its new partition",
    "deletes-lost": "continues, and rows of keys that were deleted meanwhile may stay",
    "remembered-deletes-lost": "continues without the deleted keys whose files are gone or damaged",
    "source-truncated": "leaves the rows that the source has truncated in the table",
    "side-table-replaced": "continues with the dead-letter table as it is",
}
"""What `frazil accept PIPELINE EVENT` does, by event (docs/running.md)."""


class DecisionRequired(FrazilError):
    """The pipeline stops until an operator decides; the message names the commands.

    `pipeline` is its name, `events` are those that `frazil accept` takes; without any, the operator removes the cause.
    `facts` are what the message was made of, for programs.
    """

    def __init__(
        self,
        what: str,
        *,
        pipeline: str,
        place: str,
        events: Sequence[str] = (),
        do: str = "",
        hint: str = "",
        facts: Mapping[str, object] | None = None,
    ) -> None:
        self.pipeline, self.events = pipeline, tuple(events)
        self.facts = MappingProxyType({"pipeline": pipeline, **(facts or {})})
        commands = ", ".join(f"`frazil accept {pipeline} {event} --reason …` {EVENTS[event]}" for event in events)
        self._hint = hint
        remedies = ", or ".join(part for part in (do, commands) if part)
        super().__init__(
            what, where=f"pipeline {pipeline}, {place}", do="; ".join(part for part in (remedies, hint) if part)
        )

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that let the pipeline continue, without those of the hint."""
        return tuple(re.findall(r"`(frazil [^`]+)`", self.do.removesuffix(self._hint)))
