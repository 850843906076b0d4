"""Checks of the schema registry, of each topic's subjects, and of the columns that they would become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from frazil.clients.registry.auth import display_address
from frazil.clients.registry.client import Registry
from frazil.declaration import Environment, Pipeline
from frazil.declaration.options import SchemaEvolution
from frazil.doctor.check_result import Check, Step
from frazil.doctor.lake_access import CATALOG
from frazil.doctor.machine import secret_names
from frazil.exit_codes import Exit
from frazil.lake.read.stored_tables import Lake
from frazil.schemas.evolution.table_mapping import Landing, landing
from frazil.schemas.json.json_schema import TO_LAND
from frazil.schemas.types import Struct

if TYPE_CHECKING:
    from frazil.decode.writers.topic_writers import TopicRows

REGISTRY = "registry"


def steps(
    pipelines: Sequence[Pipeline], environment: Environment, registry: Callable[[], Registry | None], lake: Lake
) -> list[Step]:
    """Return the registry's step, if a pipeline needs it, and one for the columns of each pipeline."""
    asking = {p.name for p in pipelines if p.topic.value.needs_registry or p.topic.key.needs_registry}
    made = []
    if asking and environment.registry is not None:
        secrets = secret_names(environment.registry)
        made.append(Step(name=REGISTRY, work=partial(_login, environment, registry), after=secrets))
    for pipeline in pipelines:
        after = (CATALOG, REGISTRY) if pipeline.name in asking else (CATALOG,)
        work = partial(_columns, pipeline, registry, lake, is_asked=pipeline.name in asking)
        made.append(Step(name=f"columns {pipeline.name}", work=work, after=after))
    return made


def of_columns(pipeline: Pipeline, rows: TopicRows, table: Struct | None) -> Check:
    """Return the check of the columns that a topic would become, as a new table or in one that exists."""
    name = f"columns {pipeline.name}"
    if rows.are_in_records:
        return Check.ok(name, f"the schema is in each record; `frazil preview {pipeline.name}` shows the columns")
    subjects = ", ".join(rows.subjects)
    if not rows.versions:
        if rows.problems:
            remedy = "Correct the schema, or land the topic as bytes"
            return Check.failed(name, f"no schema can be read: {rows.problems[0]}", remedy, exit=Exit.FAILED)
        what = f"no schema in subject {subjects}" if subjects else "no subject is known before a record names one"
        return Check.warning(name, what, "The pipeline waits until a producer registers a schema")
    evolution, there = pipeline.table.schema_evolution, table or Struct(())
    if pipeline.write.has_key:  # its required columns are the key, and stay so
        there = Struct(tuple(replace(field, required=False) for field in there.fields))
    found = landing(
        there,
        rows.versions,
        may_add=table is None or evolution is not SchemaEvolution.FREEZE,
        may_widen=table is None or evolution is SchemaEvolution.WIDEN,
    )
    columns = tuple((field.name, str(field.type)) for field in found.target.fields)
    count = sum(number >= 0 for number, _ in rows.versions)
    text = _found(found, subjects, count, is_new=table is None)
    problems = [*map(str, found.incompatible.values()), *rows.problems]
    if problems:
        remedy = "Records of that version are rejected; see docs/schemas.md"
        return Check.warning(name, f"{text}; a version does not land: {problems[0]}", remedy, columns=columns)
    if rows.omits:
        remedy = f"Frazil omits these properties. {TO_LAND}"
        return Check.warning(name, f"{text}; in no column: {'; '.join(rows.omits[:3])}", remedy, columns=columns)
    return Check.ok(name, text, columns=columns)


def _found(landed: Landing, subjects: str, versions: int, *, is_new: bool) -> str:
    """Return the columns in words; `versions` are those of the values, without the fields of the key."""
    count = len(landed.target.fields)
    text = f"{count} column{'' if count == 1 else 's'}"
    if subjects:
        text += f" from {versions} version{'' if versions == 1 else 's'} of {subjects}"
    if is_new:
        return text
    return f"{text}; {'; '.join(map(str, landed.changes[:3]))}" if landed.changes else f"{text}, all in the table"


def _login(environment: Environment, registry: Callable[[], Registry | None]) -> Check:
    """Check that the registry answers, and accepts our login. Raises `RegistryUnavailable`."""
    found = registry()
    assert found is not None
    assert environment.registry is not None
    count = len(found.subjects())
    where = display_address(environment.registry.url)
    return Check.ok(REGISTRY, f"{where} accepts us, {count:,} subject{'' if count == 1 else 's'}")


def _columns(pipeline: Pipeline, registry: Callable[[], Registry | None], lake: Lake, *, is_asked: bool) -> Check:
    """Check the columns of a pipeline. Raises `RegistryUnavailable`, `CatalogUnavailable` and `InvalidInput`."""
    from frazil.decode.writers.topic_writers import topic_rows  # loads Spark

    found = registry() if is_asked else None
    if is_asked and found is None:
        return Check.skipped(f"columns {pipeline.name}", "not checked: the environment has no registry")
    rows, stored = topic_rows(pipeline, found), lake.table(pipeline.table.identifier)
    return of_columns(pipeline, rows, stored.columns if stored is not None else None)
