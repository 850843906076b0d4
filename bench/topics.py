"""The messages between processes: a topic, the job of one contender, and one requested landing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bench.shapes import SHAPES, Shape
from frazil.declaration.documents.document import parse_environment
from frazil.declaration.environment import Environment


class NotWhatWasProducedError(Exception):
    """A table does not hold what its topic's records leave: the figures of such a run are invalid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A filled topic: ids 0 to rows - 1."""

    name: str
    shape: str
    rows: int
    partitions: int
    schema_id: int
    keys: int = 0
    """How many keys the records have, so that the first so many records have one each; with 0 they have those of the shape."""
    is_scattered: bool = False
    """Whether the later records of the keys have another order than the first ones."""
    key_schema_id: int = 0
    """The schema of keys that are records with the id of a row; 0 for keys that are text."""
    is_framed: bool = True
    """Whether values begin with a schema id. Flink and Connect read JSON without one only."""

    @property
    def records(self) -> Shape:
        """What the records are like."""
        return SHAPES[self.shape]

    def to_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The job of one process. `timed` is its default topic, `table` its default table."""

    contender: str
    environment_file: str
    broker_pid: int
    timed: Topic
    table: str
    folder: str
    """For checkpoints, the log and the answer."""
    cores: int = 2
    heap: str = "3g"
    batch_rows: int = 1_000_000
    format_version: int = 2
    """Iceberg's, of the tables of `state` and `changelog`; the other contenders choose their own."""
    wants: Mapping[str, int] = field(default_factory=dict)
    """Numbers that only this contender knows: how many pipelines, how many rounds."""

    @property
    def environment(self) -> Environment:
        """Where broker, registry and lake are."""
        return parse_environment(Path(self.environment_file).read_bytes())

    @property
    def shape(self) -> Shape:
        """The shape of the default topic's records."""
        return self.timed.records

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Job:
        found: dict[str, Any] = json.loads(text)
        return Job(**{**found, "timed": Topic(**found["timed"])})


class Way(Protocol):
    """The way in which a contender lands a topic into a new table."""

    def __call__(self, topic: Topic, table: str) -> Callable[[], int | None]:
        """Create the table, unmeasured. Return the measured function, which returns the number of written rows."""
