"""The data that a dangerous change affects, by name, as far as the plan and the declarations show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from frazil.declaration import Pipeline
from policies.resource_changes import Change
from policies.resources import HOLDS_DATA, NAMED_BY

_NAMED_BY = {**NAMED_BY, "aws_kms_key": "description"}
MOST_NAMED = 5
_ALL_TABLES = {"aws_kms_key", "confluent_environment", "confluent_kafka_cluster"}


def shortened(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """Return the first names and the number of the others."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def touched(change: Change, pipelines: Sequence[Pipeline]) -> tuple[str, ...]:
    """Return the data behind a resource: its name, and the pipelines and tables that use it.

    `pipelines` are the deployed ones. Empty for a resource that holds no data.
    """
    if change.type not in HOLDS_DATA:
        return ()
    name = _name(change)
    parts = [name] if name else []
    concerned = [each for each in pipelines if _concerns(change, name, each)]
    if concerned:
        parts.append(f"used by: {shortened([f'{each.name} ({each.table.identifier})' for each in concerned])}")
    return tuple(parts)


def _name(change: Change) -> str:
    values: Any = change.before or change.after
    partitions = f", {values['partitions_count']} partitions" if values.get("partitions_count") else ""
    return f"{values.get(_NAMED_BY.get(change.type, 'name')) or ''}{partitions}"


def _concerns(change: Change, name: str, pipeline: Pipeline) -> bool:
    match change.type:
        case "aws_s3_bucket":
            return "-tables-" in name
        case "aws_glue_catalog_database":
            return name == pipeline.table.namespace
        case "aws_glue_catalog_table":
            return name in {identifier.partition(".")[2] for identifier in pipeline.tables}
        case "confluent_kafka_topic" | "confluent_tableflow_topic":
            return name.partition(",")[0] == pipeline.topic.name
        case "confluent_schema":
            return name in {f"{pipeline.topic.name}-value", f"{pipeline.topic.name}-key"}
    return change.type in _ALL_TABLES
