"""The effects of a changed schema file on the columns of a table, and on records that the old schema wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from frazil.declaration import Framing, Pipeline, SchemaFile, ValueFormat
from frazil.declaration.change_effects import Outcome
from frazil.errors import FrazilError
from frazil.schema_files.declared_rows import declared_rows
from frazil.schemas import avro
from frazil.schemas.merge import merge
from frazil.schemas.types import Struct
from policies.review.columns import row_effects
from policies.review.effects import Effect

_ROW = "after"
"""The field of an event of change data that holds the row."""
_UNREAD = (
    "plain Avro has nothing that says which schema wrote a record: records that are not landed yet were written by the old "
    "schema, and are read by the new one. Those that do not end where their bytes do are rejected, others may be rows with wrong "
    "values. Stop the producers, let the pipeline land what is left, deploy, then let producers use the new schema; or have them "
    "use single-object encoding, and declare {framing} single_object with both versions"
)


def declared_schema_effects(before: Sequence[Pipeline], after: Sequence[Pipeline]) -> Iterator[Effect]:
    """Yield the effects of changed schema files on the tables of pipelines that stay."""
    known = {each.name: each for each in before}
    for new in after:
        old = known.get(new.name)
        if old is None:
            continue
        if old.topic.schema and new.topic.schema and old.topic.schema != new.topic.schema:
            yield from _of_columns(old, new)
        for side in ("", "key_"):
            yield from _of_bytes(old, new, side)


def _of_columns(old: Pipeline, new: Pipeline) -> Iterator[Effect]:
    try:
        yield from row_effects(new, _row(old), _row(new))
    except FrazilError as problem:
        what = f"the schema changes; its effect on columns is unknown here: {problem}"
        yield _effect(new, "topic.schema", what, is_dangerous=True)


def _row(pipeline: Pipeline) -> Struct:
    """Return the columns of a pipeline's declared schemas together; of events of change data those of the row."""
    has_envelope = pipeline.envelope is not None
    versions = declared_rows(pipeline.topic, connect_types=has_envelope)
    rows = [_unwrapped(row) if has_envelope else row for row in versions]
    return merge(list(enumerate(rows))).type


def _unwrapped(event: Struct) -> Struct:
    inner = next((field.type for field in event.fields if field.source == _ROW), None)
    return inner if isinstance(inner, Struct) else event


def _of_bytes(old: Pipeline, new: Pipeline, side: str) -> Iterator[Effect]:
    field, sides = f"{side}schema", (old.topic, new.topic)
    files: list[tuple[SchemaFile, ...] | None] = [getattr(topic, field) for topic in sides]
    if not (files[0] and files[1]) or any(file.format is not ValueFormat.AVRO for each in files for file in each or ()):
        return
    framings = [getattr(topic, f"{side}framing") for topic in sides]
    if framings[0] is not framings[1]:
        return  # that change says more
    try:
        there, kept = ({avro.fingerprint(file.content): file for file in each or ()} for each in files)
    except (ValueError, KeyError, TypeError):
        return  # a schema that is not read is refused by itself
    gone = [file for mark, file in there.items() if mark not in kept]
    if not gone:
        return
    if framings[1] is Framing.SINGLE_OBJECT:
        names = ", ".join(file.file for file in gone)
        what = f"records of {names} that are not landed yet are rejected (unknown_fingerprint): no declared schema is theirs"
    else:
        what = _UNREAD.format(framing=f"{side}framing")
    yield _effect(new, f"topic.{field}", what, is_dangerous=True)


def _effect(pipeline: Pipeline, changed: str, what: str, *, is_dangerous: bool) -> Effect:
    return Effect(
        pipeline=pipeline.name,
        table=pipeline.table.identifier,
        outcome=Outcome.FROM_NOW_ON,
        what=what,
        changed=changed,
        is_dangerous=is_dangerous,
    )
