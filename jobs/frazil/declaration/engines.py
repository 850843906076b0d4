"""Who lands a pipeline, and what a declaration can ask of whom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from enum import StrEnum
from typing import Any

from frazil.declaration.choice import Choices
from frazil.declaration.options import SubjectStrategy
from frazil.declaration.problems import Problem
from frazil.errors import InvalidInput


class Engine(StrEnum, metaclass=Choices):
    """Who lands a pipeline.

    `spark`: the jobs of this project. `tableflow`: Confluent's own service, in our bucket and Glue catalog; it decides on
    columns, partitions and files itself, has no ledger of ours, and no `frazil` command lands or maintains its tables.
    """

    SPARK = "spark"
    TABLEFLOW = "tableflow"


_HAS_A_SAY = {
    "topic": {"name", "value_format", "on_error"},
    "table": {"identifier"},
}
"""What Tableflow does as declared; all else is its own to decide, so that declaring it would be a promise not kept."""


def tableflow_problems(topic: Any, table: Any, limits: Any) -> Iterator[Problem]:
    """What Tableflow would not do as the topic, table and limits of a pipeline say."""
    if not topic.value_format.has_schema:
        what = f"Tableflow needs a schema, and values of format {topic.value_format} have none"
        yield Problem("topic.value_format", what, "Choose avro, json_schema or protobuf, or engine spark")
    if table.name != topic.name:
        what = f"Tableflow names a table after its topic, {topic.name}"
        yield Problem("table.identifier", what, "Name the table so, in letters that Glue takes; or choose engine spark")
    if topic.subject_strategy is not SubjectStrategy.TOPIC:
        what = "Tableflow takes a topic's schema from the subject of its name"
        yield Problem("topic.subject_strategy", what, "Remove it, or choose engine spark")
    for part, instance in (("topic", topic), ("table", table), ("limits", limits)):
        for field in fields(instance):
            is_ours = field.name in _HAS_A_SAY.get(part, set()) or field.name == "subject_strategy"
            if not is_ours and getattr(instance, field.name) != field.default:
                yield Problem(
                    f"{part}.{field.name}", "Tableflow decides this itself", "Remove it, or choose engine spark"
                )


def refuse_foreign(pipelines: Iterable[Any]) -> None:
    """Raise `InvalidInput` if another engine lands one of the pipelines: its table is not ours to write or maintain."""
    foreign = [pipeline for pipeline in pipelines if pipeline.engine is not Engine.SPARK]
    if foreign:
        names = ", ".join(pipeline.name for pipeline in foreign)
        raise InvalidInput(
            f"{names}: landed by {foreign[0].engine}, not by a job", where="engine", do="Leave it out of the run"
        )
