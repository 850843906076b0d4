"""The pipelines of several tables that one connector captures: `Debezium().tables(…)`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from frazil.declaration.checks.constraints import below, shown, unknown
from frazil.declaration.checks.problems import InvalidDeclaration, Problem
from frazil.declaration.envelopes import Envelope
from frazil.declaration.pipeline import Pipeline
from frazil.declaration.table import Table, as_table_name
from frazil.declaration.topic import Topic

OF_TOPIC, OF_TABLE, OF_PIPELINE = (
    tuple(field.name for field in fields(cls) if field.name not in derived)
    for cls, derived in ((Topic, {"name"}), (Table, {"identifier"}), (Pipeline, {"topic", "table", "name", "envelope"}))
)
SHARED = (*OF_TOPIC, *OF_TABLE, *OF_PIPELINE)
"""The names of the fields that several pipelines can share. One table's can also have `name` and `identifier`."""


def pipelines(
    envelope: Envelope,
    prefix: str,
    tables: Sequence[str],
    namespace: str,
    overrides: Mapping[str, Mapping[str, Any]],
    shared: Mapping[str, Any],
) -> tuple[Pipeline, ...]:
    """Return a pipeline for each table. Raises `InvalidDeclaration` with those of the call, or of the first table."""
    if problems := [*_misspelt(tables, overrides, shared)]:
        raise InvalidDeclaration(problems)
    made: list[Pipeline] = []
    for table in tables:
        values = {
            "identifier": f"{namespace}.{as_table_name(table.rpartition('.')[2])}",
            **shared,
            **overrides.get(table, {}),
        }
        topic, own, rest = (
            {name: values[name] for name in names if name in values}
            for names in (OF_TOPIC, ("identifier", *OF_TABLE), ("name", *OF_PIPELINE))
        )
        try:
            made.append(
                Pipeline(topic=Topic(f"{prefix}.{table}", **topic), table=Table(**own), envelope=envelope, **rest)
            )
        except InvalidDeclaration as invalid:
            place = f"debezium.tables[{shown(table)}]."
            raise InvalidDeclaration(problem.moved("pipeline.", place) for problem in invalid.problems) from None
    return tuple(made)


def _misspelt(
    tables: Sequence[str], overrides: Mapping[str, Mapping[str, Any]], shared: Mapping[str, Any]
) -> Iterator[Problem]:
    for name in shared:
        if name not in SHARED:
            yield Problem(below("debezium.tables", name), *unknown(name, ("namespace", "overrides", *SHARED)))
    for table, own in overrides.items():
        path = f"debezium.tables.overrides[{shown(table)}]"
        if table not in tables:
            yield Problem(path, *unknown(table, tables, "table"))
        for name in own:
            if name not in ("name", "identifier", *SHARED):
                yield Problem(below(path, name), *unknown(name, ("name", "identifier", *SHARED)))
