"""A pipeline: one topic that becomes one table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from frazil.declaration.chosen import Chosen, default
from frazil.declaration.column_rules import key_refusal, schemaless_refusal
from frazil.declaration.constraints import matching
from frazil.declaration.declared import Declared
from frazil.declaration.engines import Engine, tableflow_problems
from frazil.declaration.limits import Limits
from frazil.declaration.partitioning import PartitionField, SortField
from frazil.declaration.problems import Problem
from frazil.declaration.table import Table
from frazil.declaration.topic import Topic
from frazil.declaration.validation import validate

_NAME = matching(
    "[a-z][a-z0-9_]{0,99}",
    "a pipeline's name",
    "Give the pipeline a name: a lower-case letter, then up to 99 of a-z, 0-9 and _",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline(metaclass=Declared):
    """One declared mapping of a topic to a table. Its name is for ever: the table's tag `frazil_<name>` carries it."""

    topic: Annotated[Topic, "What is read."]
    table: Annotated[Table, "What it becomes."]
    name: Annotated[str, "Its name; left out, the topic's, in lower case with _ for all but a-z, 0-9 and _.", _NAME] = (
        ""
    )
    limits: Annotated[Limits, "The bounds of one batch."] = Limits()
    engine: Annotated[Chosen[Engine], "Who lands it."] = default(Engine.SPARK)

    def __post_init__(self) -> None:
        if not self.name:
            # A topic that is none is refused below; its pipeline's name is no second problem.
            name = folded(self.topic.name) if isinstance(self.topic, Topic) else "unnamed"
            object.__setattr__(self, "name", name)
        validate(self, self._contradictions)

    @property
    def tag(self) -> str:
        """The tag on the table's snapshots that says which of them holds the ledger."""
        return f"frazil_{self.name}"

    def _contradictions(self) -> Iterator[Problem]:
        if self.engine is Engine.TABLEFLOW:
            yield from tableflow_problems(self.topic, self.table, self.limits)
        fields: dict[str, PartitionField | SortField] = {
            **{f"partition_by[{index}]": place for index, place in enumerate(self.table.partition_fields)},
            **{f"sort_by[{index}]": order for index, order in enumerate(self.table.sort_fields)},
        }
        for path, field in fields.items():
            refusal = key_refusal(field.source, self.topic.key_format) or schemaless_refusal(
                field, self.topic.value_format
            )
            if refusal:
                yield Problem(f"table.{path}", *refusal)


def folded(topic_name: str) -> str:
    """The pipeline name that is derived from a topic's: `Shop.Orders-v1` -> `shop_orders_v1`."""
    return re.sub("[^a-z0-9_]", "_", topic_name.lower())
