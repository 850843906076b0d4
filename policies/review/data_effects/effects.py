"""The effects on data of replacing one pipeline document, or one desired state, by another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from frazil.declaration import Pipeline, SchemaFile, Spark
from frazil.declaration.checks.change_effects import FIELDS, Outcome
from frazil.declaration.documents.to_json import to_json
from frazil.declaration.write_modes import gaps_of_start, gaps_of_state


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One change of a pipeline and its effect. `is_dangerous`: rows may be lost or duplicated, or the pipeline stops.

    `changed` is the field with its old and new value; empty if the pipeline itself is added or removed.
    """

    pipeline: str
    outcome: Outcome
    what: str
    table: str = ""
    changed: str = ""
    before: str = ""
    after: str = ""
    is_dangerous: bool = False

    @classmethod
    def of(cls, pipeline: Pipeline, what: str, *, outcome: Outcome = Outcome.FROM_NOW_ON, **more: Any) -> Effect:
        """Return an effect on a pipeline and its table. `more` are the other fields."""
        return cls(pipeline=pipeline.name, table=pipeline.table.identifier, outcome=outcome, what=what, **more)


def effects(before: Sequence[Pipeline], after: Sequence[Pipeline]) -> tuple[Effect, ...]:
    """Return the effects; those that stop a pipeline come first."""
    old, new = ({each.name: each for each in side} for side in (before, after))
    writers = {each.table.identifier: each.name for each in before}
    found: list[Effect] = []
    for name, pipeline in new.items():
        if name not in old:
            found.append(_new(pipeline, writers.get(pipeline.table.identifier)))
    for name, pipeline in old.items():
        found += (
            changes_of_pipeline(pipeline, new[name])
            if name in new
            else [_gone(pipeline, {p.table.identifier for p in after})]
        )
    order = list(Outcome)
    return tuple(sorted(found, key=lambda e: (not e.is_dangerous, order.index(e.outcome), e.pipeline, e.changed)))


def _new(pipeline: Pipeline, earlier: str | None) -> Effect:
    table = pipeline.table
    if earlier is not None:
        what = f"the table holds its offsets under the name {earlier}, so the pipeline finds no ledger of its own (LedgerLost). "
        what += f"A pipeline's name cannot change: keep {earlier}"
        return Effect.of(pipeline, what, outcome=Outcome.STOPS, is_dangerous=True)
    if not isinstance(pipeline.engine, Spark):
        return Effect.of(pipeline, f"{pipeline.engine.kind} makes the table", outcome=Outcome.MADE)
    layout = f", partitioned by {', '.join(table.partition_by)}" if table.partition_by else ", without partitions"
    what = (
        f"{_listed(pipeline.tables)} are made from the topic {pipeline.topic.name}, from {_started(pipeline)}{layout}"
    )
    return Effect.of(pipeline, "; ".join([what, *gaps_of_state(pipeline)]), outcome=Outcome.MADE)


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _gone(pipeline: Pipeline, kept: set[str]) -> Effect:
    if pipeline.table.identifier in kept:
        return Effect.of(pipeline, "the pipeline is gone, another one has its table", outcome=Outcome.LEFT)
    what = f"{_listed(pipeline.tables)} stay with all rows; nothing is landed or maintained any more, "
    what += "and what is not landed yet is lost when Kafka's retention has passed"
    return Effect.of(pipeline, what, outcome=Outcome.LEFT, is_dangerous=True)


def changes_of_pipeline(old: Pipeline, new: Pipeline) -> Iterator[Effect]:
    """Yield the effects of each changed field of a pipeline."""
    for path, before, after in _differing(old, new):
        known, shown = FIELDS[path], {"changed": path, "before": _shown(before), "after": _shown(after)}
        what = "; ".join([known.said(before, after), *_gaps(path, old, new)])
        yield Effect.of(old, what, outcome=known.outcome, is_dangerous=known.is_dangerous(before, after), **shown)


def _gaps(path: str, old: Pipeline, new: Pipeline) -> Iterator[str]:
    """Yield what a state or a changelog may lack because of a field's new value; of `start`, when the table is made again."""
    match path:
        case "table.identifier":
            yield from gaps_of_state(new)
        case "start":
            yield from (f"then {gap}" for gap in gaps_of_start(new))
        case "on_error":
            known = {*gaps_of_state(replace(new, on_error=old.on_error))}
            yield from (gap for gap in gaps_of_state(new) if gap not in known)


_PARTS = {"topic", "table", "write", "engine", "limits", "snapshots", "order_by", "kafka", "value", "key"}
"""The fields whose own fields are compared."""


def _differing(old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    for part in fields(old):
        one, other = getattr(old, part.name), getattr(new, part.name)
        if one == other:
            continue
        if type(one) is type(other) and part.name in _PARTS and is_dataclass(one):
            yield from ((f"{part.name}.{path}", b, a) for path, b, a in _differing(one, other))
        else:
            yield part.name, one, other


def _started(pipeline: Pipeline) -> str:
    """Describe where a pipeline starts to read."""
    start = to_json(pipeline.start)
    texts = {
        "earliest": "the oldest record there is",
        "latest": "the next record",
        "offsets": "offsets that are declared",
    }
    return texts.get(start["type"]) or f"records since {start['timestamp']}"


def _shown(value: Any) -> str:
    """Return a field's value as the document writes it; of schema files the names."""
    if isinstance(value, tuple) and any(isinstance(each, SchemaFile) for each in value):
        return ", ".join(map(str, value))
    plain = to_json(value)
    if plain is None:
        return "nothing"
    if isinstance(plain, list):
        return ", ".join(map(str, plain)) or "nothing"
    if isinstance(plain, dict):
        options = {key: part for key, part in plain.items() if key not in ("type", "schema")}
        pairs = ", ".join(f"{key}={part}" for key, part in sorted(options.items()))
        return " ".join(filter(None, (str(plain.get("type", "")), pairs))) or "nothing"
    return str(plain).lower() if isinstance(plain, bool) else str(plain)


def desired_effects(before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]) -> Iterator[Effect]:
    """Yield the effects of changed desired states, by job."""
    old, new = (
        {str(each["job"]): each for each in side if "workers" in each and "job" in each} for side in (before, after)
    )
    for job, was in old.items():
        wanted, named = new.get(job), f"job {job}"
        if wanted is None:
            what = "the desired state is removed: a running job continues until an operator stops it, and is not started again"
            yield Effect(pipeline=named, outcome=Outcome.LEFT, what=what, is_dangerous=True)
        elif wanted.get("is_stopped") and not was.get("is_stopped"):
            what = "its runs are ended: rows come late, and what Kafka deletes before they are started again is lost"
            yield Effect(pipeline=named, outcome=Outcome.STOPS, what=what, is_dangerous=True)
        elif was.get("is_stopped") and not wanted.get("is_stopped"):
            what = "its runs are started again, where the tables' offsets are"
            yield Effect(pipeline=named, outcome=Outcome.FROM_NOW_ON, what=what)
