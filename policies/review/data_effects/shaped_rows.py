"""The effects of changed schemas on the declared shape of rows: what its expressions and masks read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from frazil.declaration import Pipeline
from frazil.declaration.checks.change_effects import Outcome
from frazil.schemas.evolution.column_names import folded
from frazil.schemas.evolution.merge import merge
from frazil.schemas.types import Struct
from policies.review.data_effects.effects import Effect


def shape_effects(
    pipeline: Pipeline, before: Sequence[tuple[int, Struct]], after: Sequence[tuple[int, Struct]], changed: str
) -> Iterator[Effect]:
    """Yield what an expression or a mask reads and no version has any more, or has in another type.

    A run types expressions by Spark, on all versions. With declared columns the table's columns follow from these alone.
    """
    old, new = ({each.name: each.type for each in merge(side).type.fields} for side in (before, after))
    renamed = {alias for each in merge(after).type.fields for alias in map(folded, each.aliases)}
    for number, problem in merge(after).incompatible.items() if pipeline.shape.select is not None else ():
        what = f"version {number} does not fit those before it: {problem}. Records of it are rejected"
        yield Effect.of(pipeline, what, changed=changed, is_dangerous=True)
    for name, part in _reads(pipeline).items():
        if name in old and name not in new and not (part == "mask" and name in renamed):
            what = f"no version has {name} any more, which shape.{part} reads: the pipeline stops before a commit"
            yield Effect.of(pipeline, what, changed=changed, outcome=Outcome.STOPS, is_dangerous=True)
        elif name in old and name in new and str(old[name]) != str(new[name]):
            what = f"{name}, which shape.{part} reads, is {new[name]} instead of {old[name]}"
            what += ": if that does not fit, the pipeline stops"
            yield Effect.of(pipeline, what, changed=changed, is_dangerous=True)
    of_old = {each.name for each in merge(after).type.fields if not old.keys().isdisjoint(map(folded, each.aliases))}
    if pipeline.shape.select is not None and (added := [name for name in new if name not in {*old, *of_old}]):
        stars = any(not one.name and one.value is None for one in pipeline.shape.selected)
        what = "a star selects it" if stars else "shape.select does not name it, so it lands in no column"
        for name in added:
            yield Effect.of(pipeline, f"the topic gets the field {name}, {new[name]}: {what}", changed=changed)


def _reads(pipeline: Pipeline) -> dict[str, str]:
    """Return the columns of the topic that the shape reads, each with the part that does."""
    shape = pipeline.shape
    found = dict.fromkeys(shape.condition.columns, "where") if shape.condition is not None else {}
    for one in shape.selected if shape.select is not None else ():
        found |= dict.fromkeys((*(one.value.columns if one.value is not None else ()), *one.excepted), "select")
    return found | {path.partition(".")[0]: "mask" for path in shape.masks if not path.startswith("_kafka_")}
