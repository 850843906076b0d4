"""The stop of a pipeline, as a property of its table: who has no driver, such as `frazil status`, reads it there.

A commit of the pipeline removes it, and so does a run that ends, or looks at the topic, without an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from frazil.lake.layout import START
from frazil.lake.ledger.entry import Properties, Ranges

if TYPE_CHECKING:
    from frazil.lake.iceberg_java import Iceberg

LONGEST = 2_000
"""Characters of a message that a table keeps."""


def property_name(pipeline: str) -> str:
    """Return the table property that holds a pipeline's stop."""
    return f"frazil.stopped.{pipeline}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The reason why a pipeline stopped: the error, its message, the commands that go on, and the record, if it is one.

    `at` are the offsets that the table held, None if that is not known. `records` are those that an operator may accept as dead
    letters, as ranges of offsets by partition; batches up to the offsets `until` have no others.
    """

    error: str
    message: str
    commands: tuple[str, ...] = ()
    record: tuple[str, int, int] | None = None
    at: Mapping[int, int] | None = None
    records: Ranges | None = None
    until: Mapping[int, int] | None = None
    topic_id: str = ""

    @classmethod
    def of(cls, properties: Properties, pipeline: str) -> Stop | None:
        """Return a pipeline's stop by the properties of its table; None if it did not stop."""
        text = properties.get(property_name(pipeline))
        if text is None:
            return None
        members = json.loads(text)
        for name in ("at", "records", "until"):
            if members[name] is not None:
                members[name] = {int(partition): value for partition, value in members[name].items()}
        record = members["record"]
        commands = tuple(members["commands"])
        return cls(**{**members, "commands": commands, "record": None if record is None else tuple(record)})

    def is_at(self, held: Mapping[int, int] | None) -> bool:
        """Return whether a table that holds these offsets still has the stop: another driver may have continued."""
        return self.at is None or held is None or dict(self.at) == dict(held)


def note(iceberg: Iceberg, table: str, pipeline: str, stop: Stop) -> None:
    """Keep a pipeline's stop in its table, if the table exists and Frazil made it."""
    from frazil.lake.ledger.entries import entry  # loads Spark, which readers of a stop do not need

    if not iceberg.exists(table):
        return
    loaded, name = iceberg.load(table), property_name(pipeline)
    newest = entry(loaded, pipeline)
    if newest is None and loaded.properties().get(START) is None:
        return
    at = newest.end.at if newest is not None and newest.end is not None else None
    stop = replace(stop, at=at, message=stop.message[:LONGEST])
    value = json.dumps(asdict(stop), separators=(",", ":"))
    if loaded.properties().get(name) != value:
        loaded.updateProperties().set(name, value).commit()


def clear(iceberg: Iceberg, table: str, pipeline: str) -> None:
    """Remove a pipeline's stop from its table."""
    name = property_name(pipeline)
    if iceberg.exists(table) and (loaded := iceberg.load(table)).properties().get(name) is not None:
        loaded.updateProperties().remove(name).commit()
