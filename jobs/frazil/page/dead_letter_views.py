"""The dead letters of a pipeline as its page shows them: no more than `frazil dead-letters` does, and no bytes next to masks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from frazil.clients.registry.client import Registry
from frazil.dead_letters.listing import DeadLetter, listing
from frazil.dead_letters.show import DeadLetterView, Part, show
from frazil.declaration import Pipeline
from frazil.errors import FrazilError
from frazil.lake.read.scan import Where
from frazil.lake.read.stored_tables import Lake

LISTED, EXAMPLES = 20, 6
"""Dead letters that are listed, and reasons of which the newest one is decoded."""
_NOTHING = Part(data=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The dead letters of a pipeline: counts by reason, the newest ones, and one of each reason; or a `problem`."""

    counts: Mapping[str, int] = field(default_factory=dict)
    newest: tuple[DeadLetter, ...] = ()
    examples: Mapping[str, DeadLetterView] = field(default_factory=dict)
    problem: str = ""

    @property
    def total(self) -> int:
        """All dead letters."""
        return sum(self.counts.values())


def rejected(pipeline: Pipeline, lake: Lake, registry: Registry | None) -> Rejected:
    """Return the dead letters of a pipeline. What cannot be read is a problem."""
    examples = {}
    try:
        found = listing(pipeline, lake, limit=LISTED)
        for reason in list(found.counts)[:EXAMPLES]:
            listed = [one for one in found.letters if one.reason == reason]
            conditions = [Where(column="reason", equal=reason)]
            for one in (listed or listing(pipeline, lake, conditions, limit=1).letters)[:1]:
                if view := letter(pipeline, lake, registry, (one.partition, one.offset)):
                    examples[reason] = view
    except FrazilError as error:
        return Rejected(problem=str(error))
    newest = tuple(replace(one, key=None) if pipeline.shape.is_masked else one for one in found.letters)
    return Rejected(counts=found.counts, newest=newest, examples=examples)


def letter(pipeline: Pipeline, lake: Lake, registry: Registry | None, place: tuple[int, int]) -> DeadLetterView | None:
    """Return the dead letter of a partition and an offset; None if it does not exist. Raises what reading it raises.

    That of a masked pipeline has no bytes, also if they are kept encrypted: a page may be sent.
    """
    found = show(pipeline, lake, partition=place[0], offset=place[1], schemas=registry)
    if found is None or not (pipeline.shape.is_masked or found.is_masked):
        return found
    of = replace(found.letter, key=None)
    return replace(found, letter=of, headers=(), key=_NOTHING, value=_NOTHING, is_masked=True)
