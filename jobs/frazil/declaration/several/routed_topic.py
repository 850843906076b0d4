"""The pipelines of one topic whose records are of several types: `routes(…)`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, fields, replace
from typing import Annotated, Any

from frazil.declaration.checks.constraints import shown, unknown
from frazil.declaration.checks.declared import Chosen, declared, default
from frazil.declaration.checks.problems import InvalidDeclaration, Problem
from frazil.declaration.formats import Avro, JsonSchema, Protobuf
from frazil.declaration.options import ErrorMode, SubjectStrategy
from frazil.declaration.pipeline import Pipeline
from frazil.declaration.route import By, RecordName, Rest, Route
from frazil.declaration.shape import Shape
from frazil.declaration.start import Earliest, Start
from frazil.declaration.table import Table
from frazil.declaration.topic import Topic
from frazil.declaration.write_modes import Append, WriteMode

_SHARED = tuple(one.name for one in fields(Pipeline) if one.name not in ("topic", "table", "name", "shape", "envelope"))


@declared
class Target:
    """A table of a routed topic, with what is declared for it alone; fields mean what those of `Pipeline` do."""

    table: Annotated[Table, "The table to write."] = field(kw_only=False)
    name: Annotated[str, "The pipeline's name. Default: the table's name without its namespace."] = ""
    write: Annotated[Chosen[WriteMode], "How a record becomes rows."] = default(Append())
    shape: Annotated[Shape, "The shape of rows before they land."] = Shape()
    on_error: Annotated[Chosen[ErrorMode | None], "How to handle a record that cannot land."] = default(None)
    start: Annotated[Chosen[Start], "Where to start when the table is created."] = default(Earliest())


_NAMED = Avro | JsonSchema | Protobuf
_DEFAULT = Target(Table("a.b"))


def routes(
    topic: Topic,
    *,
    by: By,
    to: Mapping[str | tuple[str, ...], Target | Table],
    otherwise: Target | Table | str = Rest.DEAD_LETTER.value,
    **shared: Any,
) -> tuple[Pipeline, ...]:
    """Return a pipeline for each table of a topic with records of several types, in the order of `to`, `otherwise` last.

    `to` maps a type, or several, to its table. Records of other types, and those without one, land in the table `otherwise`; with
    `"dead_letter"` they are dead letters of the first table, and with `"filter"` they are counted and land nowhere. A record
    without a value goes to every table with a key: it deletes the row. Other named arguments are fields of `Pipeline` that all
    share.

    Raises `InvalidDeclaration` with the problems of the call, or of the first table that has one.
    """
    if problems := [*_problems(topic, by, to, otherwise, shared)]:
        raise InvalidDeclaration(problems)
    named = [((types,) if isinstance(types, str) else tuple(types), _target(one)) for types, one in to.items()]
    rest = Rest.LAND if isinstance(otherwise, Target | Table) else Rest(otherwise)
    if isinstance(otherwise, Target | Table):
        named.append(((), _target(otherwise)))
    has_keys = any(target.write.has_key for _, target in named)
    owner = len(named) - 1 if rest is Rest.LAND else 0
    made: list[Pipeline] = []
    for number, (types, target) in enumerate(named):
        is_owner = number == owner
        route = Route(
            by=by,
            types=types,
            others=tuple(each for others, _ in named for each in others if each not in types),
            rest=rest if is_owner else Rest.FILTER,
            undecodable=is_owner,
            tombstones=target.write.has_key or (is_owner and not has_keys),
        )
        try:
            of = _with_name(topic, by, types)
            values = {one.name: getattr(target, one.name) for one in fields(Target)}
            own = {name: value for name, value in values.items() if value != getattr(_DEFAULT, name, None)}
            made.append(Pipeline(**{**shared, **own, "topic": of, "shape": replace(target.shape, route=route)}))
        except InvalidDeclaration as invalid:
            place = f"routes.to[{shown(types[0])}]." if types else "routes.otherwise."
            raise InvalidDeclaration(problem.moved("pipeline.", place) for problem in invalid.problems) from None
    return tuple(made)


def _target(given: Target | Table) -> Target:
    return Target(given) if isinstance(given, Table) else given


def _with_name(topic: Topic, by: By, types: tuple[str, ...]) -> Topic:
    """Return the topic of one table: by record names, its schemas are those of its type."""
    value = topic.value
    if not isinstance(by, RecordName) or not types or not isinstance(value, _NAMED):
        return topic
    return replace(topic, value=replace(value, record_name=types[0]))


def _problems(
    topic: Topic, by: By, to: Mapping[Any, Any], otherwise: Any, shared: Mapping[str, Any]
) -> Iterator[Problem]:
    if not to:
        yield Problem("routes.to", "no table is named", "Write {'type': Table('namespace.name')}")
    for name in shared:
        if name not in _SHARED:
            yield Problem(f"routes.{name}", *unknown(name, _SHARED))
    if not isinstance(otherwise, Target | Table) and otherwise not in (Rest.FILTER.value, Rest.DEAD_LETTER.value):
        what = f"{shown(otherwise)} is no table"
        yield Problem("routes.otherwise", what, "Write a Target, 'dead_letter' or 'filter'")
    seen: set[str] = set()
    for types, target in to.items():
        listed = (types,) if isinstance(types, str) else tuple(types)
        if not isinstance(target, Target | Table):
            yield Problem(f"routes.to[{shown(listed[0])}]", f"{shown(target)} is no table", "Write a Target or a Table")
        elif _target(target).shape.route is not None:
            yield Problem(f"routes.to[{shown(listed[0])}].shape.route", "routes(…) makes it", "Remove it")
        if isinstance(by, RecordName) and len(listed) > 1:
            what = "records of several names are not of one schema"
            yield Problem(f"routes.to[{shown(listed[0])}]", what, "Name one table for each")
        for one in listed:
            if one in seen:
                yield Problem(f"routes.to[{shown(one)}]", "the type has another table, too", "Name it once")
            seen.add(one)
    if isinstance(by, RecordName):
        yield from _name_problems(topic)


def _name_problems(topic: Topic) -> Iterator[Problem]:
    """Yield why records of a topic cannot be routed by the names in their schemas."""
    value, do = topic.value, "Choose Field(…) or Header(…)"
    if not isinstance(value, _NAMED) or value.schema is not None:
        yield Problem("routes.by", "only the schemas of a registry name records", do)
        return
    if value.record_name is not None:
        yield Problem("routes.topic.value.record_name", "routes(…) makes it", "Remove it")
    if value.subject_strategy is SubjectStrategy.TOPIC and not isinstance(value, Protobuf):
        what = "with subject_strategy topic all records are of one subject, which has one type"
        yield Problem("routes.by", what, f"Choose the strategy record or topic_record, or {do[0].lower()}{do[1:]}")
