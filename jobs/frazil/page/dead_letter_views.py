"""The dead letters of a pipeline as its page shows them: no more than `frazil dead-letters` does, and no bytes next to masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from frazil.clients.registry.schemas import RegisteredSchema
from frazil.dead_letters.listing import DeadLetter, listing
from frazil.dead_letters.show import DeadLetterView, Part, WriterSchemas, show
from frazil.declaration import Pipeline
from frazil.errors import FrazilError, RegistryUnavailable, ServiceUnavailable
from frazil.lake.read.scan import Where
from frazil.lake.read.stored_tables import Lake

LISTED, EXAMPLES = 20, 6
"""Dead letters that are listed, and reasons of which the newest one is decoded."""
_NOTHING = Part(data=None)
_T = TypeVar("_T")


class CircuitBreaker:
    """A circuit breaker before a registry, for one look: the first failure opens it. `failure` is the reason."""

    def __init__(self, registry: WriterSchemas) -> None:
        self._registry, self.failure = registry, ""

    def schema(self, schema_id: int) -> RegisteredSchema | None:
        """Return the schema of an id."""
        return self._answer(partial(self._registry.schema, schema_id))

    def id_of_guid(self, guid: str) -> int | None:
        """Return the id of a GUID."""
        return self._answer(partial(self._registry.id_of_guid, guid))

    def subjects_of(self, schema_id: int) -> tuple[str, ...]:
        """Return the subjects of a schema."""
        return self._answer(partial(self._registry.subjects_of, schema_id))

    def resolve_references(self, schema: RegisteredSchema) -> dict[str, str]:
        """Return the texts of all schemas that a schema uses, by name."""
        return self._answer(partial(self._registry.resolve_references, schema))

    def _answer(self, ask: Callable[[], _T]) -> _T:
        if not self.failure:
            try:
                return ask()
            except ServiceUnavailable as error:
                self.failure = str(error)
                raise
        raise RegistryUnavailable("the registry does not answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The open dead letters of a pipeline: counts by reason, the newest ones, and one of each reason; or a `problem`.

    `undecoded` says why the examples are not decoded. `closed` counts those with an outcome, by outcome.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    closed: Mapping[str, int] = field(default_factory=dict)
    newest: tuple[DeadLetter, ...] = ()
    examples: Mapping[str, DeadLetterView] = field(default_factory=dict)
    problem: str = ""
    undecoded: str = ""

    @property
    def total(self) -> int:
        """All open dead letters."""
        return sum(self.counts.values())


def rejected(pipeline: Pipeline, lake: Lake, registry: CircuitBreaker | None) -> Rejected:
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
    undecoded = registry.failure if registry is not None else ""
    return Rejected(counts=found.counts, closed=found.closed, newest=newest, examples=examples, undecoded=undecoded)


def letter(
    pipeline: Pipeline, lake: Lake, registry: CircuitBreaker | None, place: tuple[int, int]
) -> DeadLetterView | None:
    """Return the dead letter of a partition and an offset; None if it does not exist. Raises what reading it raises.

    That of a masked pipeline has no bytes, also if they are kept encrypted: a page may be sent.
    """
    found = show(pipeline, lake, partition=place[0], offset=place[1], schemas=registry)
    if found is None or not (pipeline.shape.is_masked or found.is_masked):
        return found
    of = replace(found.letter, key=None)
    return replace(found, letter=of, headers=(), key=_NOTHING, value=_NOTHING, is_masked=True)
