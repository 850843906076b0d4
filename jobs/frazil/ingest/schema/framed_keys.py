"""Keys of bytes that a registry's serialiser may have written: two versions of one key differ in bytes, and would be two rows."""

from __future__ import annotations

from collections.abc import Callable

from frazil.clients.registry.client import Registry
from frazil.declaration import Pipeline
from frazil.errors import InvalidInput, RegistryUnavailable
from frazil.ingest.batch.record_counts import may_be_framed
from frazil.ingest.reporting.events import Event, Reporter

ASK_AGAIN_SECONDS = 600.0
"""A subject that is registered while a driver runs is found so late if no key has an id beyond those of before."""


class FramedKeys:
    """The keys of one pipeline, as far as they are known, if they are bytes and the key of a row.

    The bytes alone prove nothing: numbers that are written big-endian begin with byte 0 as a registry's frame does. A subject for
    the topic's keys proves it. Another schema of that id is reported once, as such a number may have it by chance.
    """

    def __init__(
        self, pipeline: Pipeline, registry: Registry | None, report: Reporter, clock: Callable[[], float]
    ) -> None:
        self._pipeline, self._registry, self._report, self._clock = pipeline, registry, report, clock
        self._known: tuple[int, int] | None = None
        self._asked_at = -ASK_AGAIN_SECONDS
        self._is_reported = False

    def check_subject(self) -> None:
        """Raise `InvalidInput` if the registry has a schema of the topic's keys; and `RegistryUnavailable`."""
        subject = f"{self._pipeline.topic.name}-key"
        if may_be_framed(self._pipeline) and self._registry is not None and self._registry.versions(subject):
            raise InvalidInput(
                f"the registry has a schema of the topic's keys ({subject}), and their format is bytes",
                where=f"pipeline {self._pipeline.name}",
                do="Declare the format of that schema as key: avro, json_schema or protobuf",
            )

    def check(self, ids: tuple[int, int] | None) -> None:
        """Take notice of the lowest and the highest schema id that the keys of a batch may begin with; None if none does.

        The registry is asked if they are beyond those of earlier batches, and every ten minutes. Raises as `check_subject` does.
        """
        if ids is None:
            return
        is_new = self._known is None or ids[0] < self._known[0] or self._known[1] < ids[1]
        if not is_new and self._clock() - self._asked_at < ASK_AGAIN_SECONDS:
            return
        self.check_subject()
        self._asked_at = self._clock()
        low, high = self._known or ids
        self._known = min(low, ids[0]), max(high, ids[1])
        if is_new and not self._is_reported:
            self._report_schema(ids)

    def _report_schema(self, ids: tuple[int, int]) -> None:
        """Report that keys may be framed, if the registry has a schema of one of the ids, or cannot say so."""
        named, why = next(((number, why) for number in ids if (why := self._why(number)) is not None), (None, ""))
        if named is None:
            return
        self._is_reported = True
        self._report(
            Event.KEYS_MAY_BE_FRAMED,
            schema_id=named,
            message=f"keys begin as a registry's serialiser writes, with schema id {named}, {why}: if it wrote them, a new "
            "version of the schema makes a second row of a key",
            hint=f"Register that schema as {self._pipeline.topic.name}-key, too, and declare its format; land into a new table",
        )

    def _why(self, schema_id: int) -> str | None:
        """Return why a schema may have this id; None if no schema has it. This is advice, so no answer is none that fails."""
        if self._registry is None:
            return "and there is no registry to ask"
        try:
            return "and the registry has such a schema" if self._registry.subjects_of(schema_id) else None
        except RegistryUnavailable as error:
            return f"and the registry does not say whether it has such a schema ({error.what})"
