"""What crosses to another process: a topic, and the job of one contender."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from frazil.declaration.environment import Environment, parse_environment
from tests.bench.shapes import SHAPES, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A filled topic: ids 0 to rows - 1."""

    name: str
    shape: str
    rows: int
    partitions: int
    schema_id: int

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Topic:
        return Topic(**json.loads(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What one process is to do: land `warm`, then, measured, `timed`, each into a table of its own."""

    contender: str
    environment_file: str
    broker_pid: int
    warm: Topic
    timed: Topic
    table: str
    folder: str
    """For checkpoints, recordings and the answer."""
    cores: int = 2
    heap: str = "4g"
    batch_rows: int = 1_000_000
    java: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> Environment:
        """Where broker, registry and lake are."""
        return parse_environment(Path(self.environment_file).read_bytes())

    @property
    def shape(self) -> Shape:
        """The shape of both topics' records."""
        return SHAPES[self.timed.shape]

    @property
    def warm_table(self) -> str:
        """Where the warm-up lands."""
        return f"{self.table}_warm"

    @property
    def spark_settings(self) -> dict[str, str]:
        """What every contender's JVM is given."""
        java = {"spark.driver.extraJavaOptions": self.java} if self.java else {}
        return {"spark.driver.memory": self.heap, **java, **self.settings}

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Job:
        found: dict[str, Any] = json.loads(text)
        return Job(**{**found, "warm": Topic(**found["warm"]), "timed": Topic(**found["timed"])})
