"""The effects of a new schema version on the columns of tables.

Deployment registers the schemas of its own topics, so a plan holds the old and the new text. Versions that producers
register later are not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from frazil.declaration import Pipeline, SchemaEvolution, SubjectStrategy, ValueFormat
from frazil.declaration.checks.change_effects import Outcome
from frazil.errors import FrazilError
from frazil.schemas import avro
from frazil.schemas.evolution.merge import merge, same_field
from frazil.schemas.evolution.schema_changes import changes, plain
from frazil.schemas.evolution.table_mapping import landing
from frazil.schemas.json import json_schema
from frazil.schemas.json_columns import with_variants
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Struct
from policies.review.data_effects.effects import Effect
from policies.review.plan.resource_changes import Planned, Verb

_SUBJECT_OF = "{topic}-value"


def column_effects(planned: Iterable[Planned], pipelines: Iterable[Pipeline]) -> Iterator[Effect]:
    """Yield the effects of changed schemas on the tables of these pipelines: columns added, widened, or refused."""
    readers: dict[str, list[Pipeline]] = {}
    for pipeline in pipelines:
        if pipeline.topic.subject_strategy is SubjectStrategy.TOPIC and pipeline.topic.needs_registry:
            readers.setdefault(_SUBJECT_OF.format(topic=pipeline.topic.name), []).append(pipeline)
    for change in planned:
        if change.type != "confluent_schema" or change.verb not in {Verb.UPDATE, Verb.REPLACE}:
            continue
        if change.before.get("schema") != change.after.get("schema") or change.is_unknown("schema"):
            for pipeline in readers.get(str(change.after.get("subject_name", "")), ()):
                yield from _of(pipeline, change)


def _of(pipeline: Pipeline, change: Planned) -> Iterator[Effect]:
    language = pipeline.topic.value_format
    old, new = str(change.before.get("schema") or ""), str(change.after.get("schema") or "")
    try:
        rows = _row(language, old), _row(language, new)
    except (FrazilError, _NotReadHere) as problem:
        yield _effect(pipeline, f"the schema changes; its effect on columns is unknown here: {problem}")
        return
    lines, refused, lost = _compared(pipeline, *rows)
    if refused:
        what = (
            f"the new version does not fit the table under schema_evolution={pipeline.table.schema_evolution}: {refused}. "
            "Records of it are rejected"
        )
        yield _effect(pipeline, what, is_dangerous=True)
    for what in lost:
        yield _effect(pipeline, what, is_dangerous=True)
    for line in lines:
        yield _effect(pipeline, line)
    if not lines and not refused and not lost:
        yield _effect(pipeline, "the schema changes, and no column does", outcome=Outcome.UPKEEP)


class _NotReadHere(Exception):
    """A schema's language needs a compiler that is not available."""


def _compared(pipeline: Pipeline, before: Struct, after: Struct) -> tuple[list[str], str, list[str]]:
    """Return the changes of columns in words, why the new version is refused, if it is, and what records lack without columns."""
    evolution = pipeline.table.schema_evolution
    if pipeline.table.has_variants:
        before, after = with_variants(before), with_variants(after)
    table_before = merge([(1, before)]).type
    table = plain(table_before)
    assert isinstance(table, Struct)
    found = landing(
        table,
        [(1, before), (2, after)],
        may_add=evolution is not SchemaEvolution.FREEZE,
        may_widen=evolution is SchemaEvolution.WIDEN,
    )
    problem = found.incompatible.get(2)
    if problem is not None:
        return [], str(problem), []
    needed = {str(change) for change in changes(table, table_before)}
    kept = [same_field(field, table_before.fields) for field in after.fields]
    gone = [field.name for field in table_before.fields if field not in kept]
    lines = [str(change) for change in found.changes if str(change) not in needed]
    needed_by = dict.fromkeys(pipeline.write.order_columns, ("order", Reason.ORDER_MISSING))
    needed_by |= dict.fromkeys(pipeline.write.key or (), ("key", Reason.KEY_NULL))
    lost = [
        f"the schema has the {part} column {name} no more: records of the new version are rejected ({reason})"
        for name in gone
        if name in needed_by
        for part, reason in (needed_by[name],)
    ]
    stays = [
        f"column {name} stays, and is null in new rows: the schema has it no more"
        for name in gone
        if name not in needed_by
    ]
    return [*lines, *stays], "", lost


def _row(language: ValueFormat, text: str) -> Struct:
    match language:
        case ValueFormat.AVRO:
            return avro.row_type(avro.parse(text, {}))
        case ValueFormat.JSON_SCHEMA:
            return json_schema.row_type(json_schema.parse(text, {}))
        case _:
            raise _NotReadHere(f"{language} is not compiled by a review")


def _effect(
    pipeline: Pipeline, what: str, *, outcome: Outcome = Outcome.FROM_NOW_ON, is_dangerous: bool = False
) -> Effect:
    return Effect(
        pipeline=pipeline.name,
        table=pipeline.table.identifier,
        outcome=outcome,
        what=what,
        changed="schema",
        is_dangerous=is_dangerous,
    )
