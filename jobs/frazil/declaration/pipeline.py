"""A pipeline: one topic that becomes one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from frazil.declaration.checks.allowed_options import option_problems
from frazil.declaration.checks.constraints import between, matching
from frazil.declaration.checks.declared import Chosen, declared, default
from frazil.declaration.checks.pipeline_problems import pipeline_problems
from frazil.declaration.checks.problems import Problem
from frazil.declaration.checks.validation import FrozenMap, chosen, validate
from frazil.declaration.engines import LandingEngine, Spark
from frazil.declaration.envelopes import Envelope
from frazil.declaration.options import ErrorMode, Isolation
from frazil.declaration.shape import Shape
from frazil.declaration.start import Earliest, Start
from frazil.declaration.table import Table
from frazil.declaration.topic import Topic
from frazil.declaration.write_modes import Append, WriteMode, default_error_mode

_NAME = matching(
    "[a-z][a-z0-9_]{0,99}",
    "a pipeline's name",
    "Give the pipeline a name: a lower-case letter, then up to 99 of a-z, 0-9 and _",
)


@declared
class Reading:
    """The settings of Kafka's consumer for a topic."""

    isolation: Annotated[Chosen[Isolation], "Which records of transactions are read."] = default(
        Isolation.READ_COMMITTED
    )
    options: Annotated[Mapping[str, str], "Options of the consumer, from a short list."] = FrozenMap()

    def _contradictions(self) -> Iterator[Problem]:
        return option_problems(self.options)


@declared
class Pipeline:
    """One declared mapping of a topic to a table. Its name is permanent: the table's tag `frazil_<name>` carries it."""

    topic: Annotated[Topic, "The topic to read."]
    table: Annotated[Table, "The table to write."]
    name: Annotated[str, "The pipeline's name. Default: the table's name without its namespace.", _NAME] = ""
    write: Annotated[Chosen[WriteMode], "How a record becomes rows."] = default(Append())
    engine: Annotated[Chosen[LandingEngine], "The engine that lands the topic."] = default(Spark())
    envelope: Annotated[
        Chosen[Envelope | None], "The envelope around a row in its record, of change data. Default: none."
    ] = default(None)
    start: Annotated[Chosen[Start], "Where to start when the table is created."] = default(Earliest())
    on_error: Annotated[
        Chosen[ErrorMode],
        "How to handle a record that cannot land. Default: dead_letter, and suspend with upserts and changelogs.",
    ] = default(None)
    max_rejected_percent: Annotated[
        int | None,
        "The highest share of rejected records in percent. Above it, a batch of at least 100 records is not committed, and the "
        "pipeline stops until an operator decides. Skipped records count, tombstones do not. Default: 50. With 100 it never stops.",
        between(1, 100),
    ] = None
    shape: Annotated[Shape, "The shape of rows before they land. Default: they land as they are."] = Shape()
    headers: Annotated[bool, "Keep the records' headers. If false, their column stays null."] = True
    kafka: Annotated[Reading, "How Kafka's consumer reads the topic."] = Reading()

    def __post_init__(self) -> None:
        if isinstance(self.name, str) and not self.name:
            # An invalid table is reported below; do not report the derived name, too.
            name = self.table.name if isinstance(self.table, Table) else "unnamed"
            object.__setattr__(self, "name", name)
        if self.on_error is None:
            write = chosen(Pipeline, {"write": self.write})["write"]  # it may be given as text
            object.__setattr__(self, "on_error", default_error_mode(write))
        validate(self, self._contradictions)

    @property
    def tag(self) -> str:
        """The tag on the table's snapshots that says which of them holds the ledger."""
        return f"frazil_{self.name}"

    @property
    def tables(self) -> tuple[str, ...]:
        """The identifiers of the tables that the pipeline writes: its table, and the dead letters."""
        return (self.table.identifier, self.table.dead_letters)

    @property
    def is_change_data(self) -> bool:
        """True if records are changes in an envelope, not rows."""
        return self.envelope is not None

    @property
    def group(self) -> str | None:
        """The group whose deployed jobs land the topic."""
        return self.engine.group if isinstance(self.engine, Spark) else None

    @property
    def isolation(self) -> Isolation:
        """The records of transactions that are read."""
        return self.kafka.isolation

    def _contradictions(self) -> Iterator[Problem]:
        return pipeline_problems(self)
