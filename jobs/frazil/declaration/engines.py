"""Engines: who lands a pipeline, and what a declaration can ask of whom. A document tags an engine by `type`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from frazil.declaration.declared import declared
from frazil.declaration.limits import Limits
from frazil.declaration.options import SubjectStrategy
from frazil.declaration.problems import Problem
from frazil.declaration.write_modes import Upsert
from frazil.errors import InvalidInput

if TYPE_CHECKING:
    from frazil.declaration.pipeline import Pipeline


@declared
class Spark:
    """The jobs of this project."""

    kind: ClassVar[str] = "spark"

    limits: Annotated[Limits, "The limits of one batch."] = Limits()


@declared
class Tableflow:
    """Confluent's own service, in a bucket and the Glue catalog of your account.

    It decides on columns, partitions and files itself and has no ledger. No `frazil` command lands or maintains its tables. With
    `write=Upsert()`, the topic must be compacted: that is by what Tableflow chooses its write mode.
    """

    kind: ClassVar[str] = "tableflow"


LandingEngine = Spark | Tableflow
"""The union of the engines. Code that depends on the engine matches on it."""


GLUE_NAME, GLUE_NAME_WORDS = "[a-z0-9_]+", "a-z, 0-9 and _ only"
"""The topics whose names Glue and Athena take as they are. Glue folds capitals. Confluent's pages say that a table is named after
its topic, and nothing of `.`, `-` and capitals:
https://docs.confluent.io/cloud/current/topics/tableflow/how-to-guides/catalog-integration/integrate-with-aws-glue-catalog.html"""
_HAS_A_SAY = {
    "topic": {"name", "value_format", "subject_strategy"},
    "table": {"identifier"},
    "write": set(),
    "": {"topic", "table", "name", "engine", "on_error"},
}
"""What Tableflow does as declared; all else is its own to decide, so that declaring it would be a promise not kept."""


def tableflow_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield what Tableflow would not do as the pipeline declares it."""
    topic, table = pipeline.topic, pipeline.table
    if not topic.value_format.has_schema:
        what = f"Tableflow needs a schema, and values of format {topic.value_format} have none"
        yield Problem("topic.value_format", what, "Choose avro, json_schema or protobuf, or engine spark")
    if not re.fullmatch(GLUE_NAME, topic.name):
        what = f"Tableflow's role may write one table by its name, and Confluent documents no name of a Glue table for {topic.name}"
        do = f"Use a topic with {GLUE_NAME_WORDS} in its name, or choose engine spark, which takes any topic"
        yield Problem("topic.name", what, do)
    elif table.name != topic.name:
        what = f"Tableflow names a table after its topic, {topic.name}"
        yield Problem("table.identifier", what, "Name the table so, in letters that Glue takes; or choose engine spark")
    if topic.subject_strategy is not SubjectStrategy.TOPIC:
        what = "Tableflow takes a topic's schema from the subject of its name"
        yield Problem("topic.subject_strategy", what, "Remove it, or choose engine spark")
    parts: dict[str, Any] = {"topic": topic, "table": table, "": pipeline}
    is_state = isinstance(pipeline.write, Upsert)
    for part, instance in (parts | {"write": pipeline.write} if is_state else parts).items():
        for field in fields(instance):
            if field.name == "write" and is_state:
                continue  # a state by the record's key, of a topic that Kafka compacts: each option is another state
            if field.name not in _HAS_A_SAY[part] and getattr(instance, field.name) != field.default:
                path = f"{part}.{field.name}" if part else field.name
                yield Problem(path, "Tableflow decides this itself", "Remove it, or choose engine spark")


def refuse_foreign(pipelines: Iterable[Pipeline]) -> None:
    """Raise `InvalidInput` if another engine lands one of the pipelines: Frazil may not write or maintain its table."""
    foreign = [pipeline for pipeline in pipelines if not isinstance(pipeline.engine, Spark)]
    if foreign:
        names = ", ".join(pipeline.name for pipeline in foreign)
        raise InvalidInput(
            f"{names}: landed by {foreign[0].engine.kind}, not by a job", where="engine", do="Leave it out of the run"
        )
