"""The effects of a new schema version on the columns of tables.

Deployment registers the schemas of its own topics, so a plan holds the old and the new text. Versions that producers
register later are not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from frazil.declaration import Avro, JsonSchema, Pipeline, SubjectStrategy
from frazil.declaration.checks.change_effects import Outcome
from frazil.errors import FrazilError, UnreadableSchema
from frazil.schemas import avro
from frazil.schemas.json import json_schema
from frazil.schemas.json_columns import with_variants
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Struct
from policies.resource_changes import Change, Verb
from policies.review.data_effects.effects import Effect
from policies.review.data_effects.landed_columns import Landed
from policies.review.data_effects.shaped_rows import shape_effects


def column_effects(planned: Iterable[Change], pipelines: Iterable[Pipeline]) -> Iterator[Effect]:
    """Yield the effects of changed schemas on the tables of these pipelines: columns added, widened, or refused."""
    readers: dict[str, list[Pipeline]] = {}
    for pipeline in pipelines:
        if pipeline.topic.value.subject_strategy is SubjectStrategy.TOPIC and pipeline.topic.value.needs_registry:
            readers.setdefault(f"{pipeline.topic.name}-value", []).append(pipeline)
    for change in planned:
        if change.type != "confluent_schema" or change.verb not in {Verb.UPDATE, Verb.REPLACE}:
            continue
        if change.before.get("schema") != change.after.get("schema") or change.is_unknown("schema"):
            for pipeline in readers.get(str(change.after.get("subject_name", "")), ()):
                yield from _of(pipeline, change)


def _of(pipeline: Pipeline, change: Change) -> Iterator[Effect]:
    try:
        old, new = (_row(pipeline, str(side.get("schema") or "")) for side in (change.before, change.after))
    except FrazilError as unread:
        what = f"the schema changes; its effect on columns is unknown here: {unread}"
        yield Effect.of(pipeline, what, changed="schema")
        return
    yield from shape_effects(pipeline, [(1, old)], [(1, old), (2, new)], "schema")
    if pipeline.shape.select is not None:
        return
    found = Landed.of([(1, old)], [(2, new)], pipeline, kept=[(1, old)])
    if problem := found.unfit.get(2):
        evolution = f"under schema_evolution={pipeline.table.schema_evolution}"
        what = f"the new version does not fit the table {evolution}: {problem}. Records of it are rejected"
        yield Effect.of(pipeline, what, changed="schema", is_dangerous=True)
        return
    needed_by = dict.fromkeys(pipeline.write.order_columns, ("order", Reason.ORDER_MISSING))
    needed_by |= dict.fromkeys(pipeline.write.key or (), ("key", Reason.KEY_NULL))
    for line in found.lines:
        yield Effect.of(pipeline, line, changed="schema")
    for name in found.gone:
        what = f"column {name} stays, and is null in new rows: the schema has it no more"
        if name in needed_by:
            part, reason = needed_by[name]
            what = (
                f"the schema has the {part} column {name} no more: records of the new version are rejected ({reason})"
            )
        yield Effect.of(pipeline, what, changed="schema", is_dangerous=name in needed_by)
    if not found.lines and not found.gone:
        yield Effect.of(pipeline, "the schema changes, and no column does", outcome=Outcome.UPKEEP, changed="schema")


def _row(pipeline: Pipeline, text: str) -> Struct:
    match pipeline.topic.value:
        case Avro():
            row = avro.row_type(avro.parse(text, {}))
        case JsonSchema():
            row = json_schema.row_type(json_schema.parse(text, {}))
        case language:
            raise UnreadableSchema(f"{language.kind} is not compiled by a review")
    return with_variants(row) if pipeline.table.has_variants else row
