"""The effects of a changed schema file on the columns of a table, and on records that the old schema wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from frazil.declaration import Avro, Format, Framing, Pipeline
from frazil.errors import FrazilError
from frazil.schemas import avro
from policies.review.data_effects.changed_readings import changed_readings
from policies.review.data_effects.effects import Effect
from policies.review.data_effects.landed_columns import declared_column_effects

_UNREAD = (
    "plain Avro has nothing that says which schema wrote a record: records that are not landed yet were written by the old "
    "schema, and are read by the new one. Those that do not end where their bytes do are rejected, others may be rows with wrong "
    "values. Stop the producers, let the pipeline land what is left, deploy, then let producers use the new schema; or have them "
    "use single-object encoding, and declare {framing} single_object with both versions"
)

_OTHERWISE = (
    "records that are not landed yet were written by the old schema, and the new one reads their values otherwise: {found}. "
    "They may become rows with wrong values. Stop the producers, let the pipeline land what is left, deploy, then let producers "
    "use the new schema; or leave the field as it is and add one with a new name and number"
)


def declared_schema_effects(before: Sequence[Pipeline], after: Sequence[Pipeline]) -> Iterator[Effect]:
    """Yield the effects of changed schema files on the tables of pipelines that stay."""
    known = {each.name: each for each in before}
    for new in after:
        old = known.get(new.name)
        if old is None:
            continue
        yield from _of_columns(old, new)
        for side, is_key in (("value", False), ("key", True)):
            formats = old.topic.side(is_key=is_key), new.topic.side(is_key=is_key)
            yield from _of_bytes(*formats, new, side)
            yield from _of_readings(*formats, new, side)


def _of_columns(old: Pipeline, new: Pipeline) -> Iterator[Effect]:
    try:
        yield from declared_column_effects(old, new)
    except FrazilError as problem:
        what = f"the schema changes; its effect on columns is unknown here: {problem}"
        changed = "topic.value.schema" if old.topic.value.schema != new.topic.value.schema else "topic.key.schema"
        yield Effect.of(new, what, changed=changed, is_dangerous=True)


def _of_readings(old: Format, new: Format, pipeline: Pipeline, side: str) -> Iterator[Effect]:
    """Yield what waiting records mean by the new schema that they did not by the old one."""
    files, changed = [each.schema or () for each in (old, new)], f"topic.{side}.schema"
    if not all(files) or files[0] == files[1]:
        return
    messages = [each.record_name for each in (old, new)]
    try:
        if new.framing is Framing.SINGLE_OBJECT:
            pairs = [
                (a, b) for a in files[0] for b in files[1] if avro.fingerprint(a.content) == avro.fingerprint(b.content)
            ]
        else:
            pairs = [(files[0][-1], files[1][-1])]
        connect = pipeline.is_change_data
        found = ", ".join(filter(None, (changed_readings(a, b, messages, connect_types=connect) for a, b in pairs)))
    except (FrazilError, ValueError, KeyError, TypeError) as problem:
        what = f"the schema changes; whether it reads waiting records as the old one did is unknown here: {problem}"
        yield Effect.of(pipeline, what, changed=changed, is_dangerous=True)
        return
    if found:
        yield Effect.of(pipeline, _OTHERWISE.format(found=found), changed=changed, is_dangerous=True)


def _of_bytes(old: Format, new: Format, pipeline: Pipeline, side: str) -> Iterator[Effect]:
    if not (isinstance(old, Avro) and isinstance(new, Avro) and old.schema and new.schema):
        return
    if old.framing is not new.framing:
        return  # that change says more
    try:
        there, kept = ({avro.fingerprint(file.content): file for file in each} for each in (old.schema, new.schema))
    except (FrazilError, ValueError, KeyError, TypeError):
        return  # a schema that is not read is refused by itself, and `_of_readings` says that nothing is known
    gone = [file for mark, file in there.items() if mark not in kept]
    if not gone:
        return
    if new.framing is Framing.SINGLE_OBJECT:
        names = ", ".join(file.file for file in gone)
        what = f"records of {names} that are not landed yet are rejected (unknown_fingerprint): no declared schema is theirs"
    else:
        what = _UNREAD.format(framing=f"topic.{side}.framing")
    yield Effect.of(pipeline, what, changed=f"topic.{side}.schema", is_dangerous=True)
