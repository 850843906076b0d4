"""The outcomes of dead letters."""

from __future__ import annotations

from enum import StrEnum


class DeadLetterOutcome(StrEnum):
    """The outcome of a dead letter; one without an outcome is open.

    `RECOVERED`: it is a row, or changed one. `SUPERSEDED`: a later record of its key took effect. `FILTERED`: the declaration
    leaves its record out. `DISCARDED`: an operator gave it up.
    """

    RECOVERED = "recovered"
    SUPERSEDED = "superseded"
    FILTERED = "filtered"
    DISCARDED = "discarded"


LANDED = (DeadLetterOutcome.RECOVERED, DeadLetterOutcome.SUPERSEDED)
"""The outcomes of dead letters that count as landed."""
