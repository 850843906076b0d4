"""The pipelines of one topic whose records are of several types: `routes(…)`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, fields, replace
from typing import Annotated, Any, overload

from frazil.declaration.checks.constraints import shown, unknown
from frazil.declaration.checks.declared import Chosen, declared, default
from frazil.declaration.checks.problems import InvalidDeclaration, Problem
from frazil.declaration.checks.validation import chosen
from frazil.declaration.formats import Avro, Bytes, JsonSchema, Protobuf, Text
from frazil.declaration.options import ErrorMode, SubjectStrategy
from frazil.declaration.pipeline import Pipeline
from frazil.declaration.route import By, Field, RecordName, Rest, Route
from frazil.declaration.several.type_pattern import EXAMPLE, TypePattern, table_refusal
from frazil.declaration.shape import Shape
from frazil.declaration.start import Start
from frazil.declaration.table import Table
from frazil.declaration.topic import Topic
from frazil.declaration.write_modes import Append, WriteMode

_SHARED = tuple(one.name for one in fields(Pipeline) if one.name not in ("topic", "table", "name", "shape", "envelope"))


_NAMED = Avro | JsonSchema | Protobuf


@declared
class Target:
    """A table of a routed topic, with what is declared for it alone; fields mean what those of `Pipeline` do."""

    table: Annotated[Table, "The table to write."] = field(kw_only=False)
    name: Annotated[str, "The pipeline's name. Default: the table's name without its namespace."] = ""
    write: Annotated[Chosen[WriteMode | None], "How a record becomes rows. Default: as for all tables."] = default(None)
    shape: Annotated[Shape, "The shape of rows before they land."] = Shape()
    on_error: Annotated[
        Chosen[ErrorMode | None], "How to handle a record that cannot land. Default: as for all tables."
    ] = default(None)
    start: Annotated[Chosen[Start | None], "Where to start when the table is created. Default: as for all tables."] = (
        default(None)
    )

    def _contradictions(self) -> Iterator[Problem]:
        if self.shape.route is not None:
            yield Problem("shape.route", "routes(…) makes it", "Remove it")


@overload
def routes(
    topic: Topic,
    *,
    by: By,
    to: Mapping[str | tuple[str, ...], Target | Table],
    otherwise: Target | Table | str = ...,
    **shared: Any,
) -> tuple[Pipeline, ...]: ...


@overload
def routes(
    topic: Topic,
    *,
    by: By,
    to: Mapping[str | tuple[str, ...], Target | Table | str],
    otherwise: Target | Table | str = ...,
    most: int = ...,
    **shared: Any,
) -> tuple[Pipeline | TypePattern, ...]: ...


def routes(
    topic: Topic,
    *,
    by: By,
    to: Mapping[str | tuple[str, ...], Any],
    otherwise: Target | Table | str = Rest.DEAD_LETTER.value,
    most: int = 100,
    **shared: Any,
) -> tuple[Any, ...]:
    """Return a pipeline for each table of a topic with records of several types, in the order of `to`, `otherwise` last.

    `to` maps a type, or several, to its table. Records of other types, and those without one, land in the table `otherwise`; with
    `"dead_letter"` they are dead letters of the first table, and with `"filter"` they are counted and land nowhere. A record
    without a value goes to every table whose rows it can name: it deletes the row of its key. Other named arguments are fields of
    `Pipeline` that all share, unless a target has its own.

    One entry of `to` may be new types, those that are registered later included: `"shop.events.*": "shop.{name}"` is a table for
    each type that begins so and that no other entry names. `{type}` is the type, `{name}` its last part. It is a `TypePattern`, the
    last of what this returns, and needs `by=RecordName()` and `subject_strategy` `topic_record`. `most` bounds the number of types.

    Raises `InvalidDeclaration` with the problems of the call, or of the first table that has one.
    """
    if problems := [*_problems(topic, by, to, otherwise, shared)]:
        raise InvalidDeclaration(problems)
    entries = [((types,) if isinstance(types, str) else types, one) for types, one in to.items()]
    named = [(types, _target(one)) for types, one in entries if not isinstance(one, str)]
    new = next(((types, one) for types, one in entries if isinstance(one, str)), None)
    rest = Rest(otherwise) if isinstance(otherwise, str) else Rest.LAND
    if not isinstance(otherwise, str):
        named.append(((), _target(otherwise)))
    owner = len(named) - 1 if rest is Rest.LAND else 0
    if new is not None:
        named.append(((EXAMPLE,), Target(Table(f"{new[1].partition('.')[0]}.{EXAMPLE}"))))
    given = chosen(Pipeline, {"write": shared.get("write", Append())})["write"]
    usual = given if isinstance(given, WriteMode) else Append()  # else each pipeline says what is wrong with it
    deletes = [_takes_deletes(target.write or usual, topic) for _, target in named]
    made: list[Pipeline | TypePattern] = []
    for number, (types, target) in enumerate(named):
        is_owner, is_new = number == owner, new is not None and number == len(named) - 1
        try:
            route = Route(
                by=by,
                types=types,
                others=tuple(
                    each for others, one in entries for each in others if each not in types and not isinstance(one, str)
                ),
                new_types=new[0] if new is not None else None,
                rest=rest if is_owner else Rest.FILTER,
                undecodable=is_owner,
                tombstones=deletes[number] or (is_owner and not any(deletes)),
                hides_bytes=any(other.shape.mask for _, other in named if other is not target),
            )
            values = {one.name: getattr(target, one.name) for one in fields(Target)}
            own = {name: value for name, value in values.items() if value is not None}
            own |= {"topic": _with_name(topic, by, types), "shape": replace(target.shape, route=route)}
            pipeline = Pipeline(**{**shared, **own})
            made.append(TypePattern(table=new[1], pipeline=pipeline, most=most) if new and is_new else pipeline)
        except InvalidDeclaration as invalid:
            raise InvalidDeclaration(_placed(invalid.problems, types, new[0] if new and is_new else None)) from None
    return tuple(made)


def _placed(problems: Iterable[Problem], types: tuple[str, ...], new: tuple[str, ...] | None) -> Iterator[Problem]:
    """Yield problems with the arguments of `routes` as their places."""
    if new is not None:
        types = new
    place = f"routes.to[{shown(types[0])}]." if types else "routes.otherwise."
    moves = {"route.": "shape.route.", "type_pattern.pipeline.": "", "type_pattern.": "", "pipeline.": ""}
    for problem in problems:
        known = next((begin for begin in moves if problem.path.startswith(begin)), None)
        yield problem if known is None else problem.moved(known, f"{place}{moves[known]}")


def _target(given: Target | Table) -> Target:
    return Target(given) if isinstance(given, Table) else given


def _takes_deletes(write: WriteMode, topic: Topic) -> bool:
    """Return whether a record without a value can name a row of the table, and its place in the order."""
    has_key = write.has_key and (write.key is None or not isinstance(topic.key, Bytes | Text))
    return has_key and not {*write.order_columns} - {"_kafka_timestamp"}


def _with_name(topic: Topic, by: By, types: tuple[str, ...]) -> Topic:
    """Return the topic of one table: by record names, its schemas are those of its type."""
    value = topic.value
    if not isinstance(by, RecordName) or not types or not isinstance(value, _NAMED):
        return topic
    return replace(topic, value=replace(value, record_name=types[0]))


def _problems(topic: Any, by: By, to: Any, otherwise: Any, shared: Mapping[str, Any]) -> Iterator[Problem]:
    if not isinstance(topic, Topic):
        yield Problem("routes.topic", f"{shown(topic)} is not a Topic", "Write Topic(…)")
        return
    if not isinstance(by, By):
        yield Problem(
            "routes.by", f"{shown(by)} says of no record which type it is", "Write RecordName(), Field(…) or Header(…)"
        )
    for name in shared:
        if name not in _SHARED:
            yield Problem(f"routes.{name}", *unknown(name, _SHARED))
    if not isinstance(otherwise, Target | Table) and otherwise not in (Rest.FILTER.value, Rest.DEAD_LETTER.value):
        yield Problem(
            "routes.otherwise", f"{shown(otherwise)} is not a Target", "Write a Target, 'dead_letter' or 'filter'"
        )
    if not isinstance(to, Mapping) or not to:
        yield Problem("routes.to", "no table is named", "Write {'type': Table('namespace.name')}")
        return
    if all(isinstance(target, str) for target in to.values()) and isinstance(otherwise, str):
        what = "no table has the dead letters of records without a type"
        yield Problem("routes.otherwise", what, "Name a table")
    seen: set[str] = set()
    for types, target in to.items():
        listed = (types,) if isinstance(types, str) else types
        path = f"routes.to[{shown(types)}]"
        if not isinstance(listed, tuple) or not listed or not all(isinstance(one, str) for one in listed):
            yield Problem(path, "this is not a type", "Write a text, or a tuple of texts")
            continue
        is_new = isinstance(target, str) and ("{" in target or any("*" in one for one in listed))
        if is_new:
            if refusal := table_refusal(target):
                yield Problem(path, *refusal)
            if sum(isinstance(one, str) for one in to.values()) > 1:
                yield Problem(
                    path, "several entries are new types", "Write one: {('shop.a.*', 'shop.b.*'): 'shop.{name}'}"
                )
        elif not isinstance(target, Target | Table):
            yield Problem(path, f"{shown(target)} is not a Target", "Write a Target or a Table")
        elif isinstance(by, RecordName) and len(listed) > 1:
            yield Problem(path, "records of several names are not of one schema", "Name one table for each")
        elif isinstance(by, RecordName) and "*" in listed[0]:
            namespace = (target.table if isinstance(target, Target) else target).namespace
            what = f"{shown(listed[0])} is several types, and records of several names are not of one schema"
            yield Problem(path, what, f"Write '{namespace}.{{name}}' for a table of each")
        for one in listed:
            if one in seen:
                yield Problem(path, f"the type {shown(one)} is named twice", "Name it once")
            seen.add(one)
    if isinstance(by, RecordName):
        yield from _name_problems(topic)
    if isinstance(by, Field):
        yield from _key_problems(topic, by, [*to.items(), ("otherwise", otherwise)], shared)


def _key_problems(
    topic: Topic, by: Field, targets: Iterable[tuple[object, Any]], shared: Mapping[str, Any]
) -> Iterator[Problem]:
    """Yield the tables that have the type from the record's key, which is not a value's."""
    names = {column.partition(" ")[0] for column in topic.key.columns or ()}
    if by.path.partition(".")[0] not in names:
        return
    for types, target in targets:
        own = target.write if isinstance(target, Target) else None
        write = own if own is not None else chosen(Pipeline, {"write": shared.get("write", Append())})["write"]
        if isinstance(target, Target | Table) and isinstance(write, WriteMode) and write.has_key and write.key is None:
            place = "routes.otherwise" if types == "otherwise" else f"routes.to[{shown(types)}]"
            what = f"the record's key has the field {by.path}, and fills its column"
            yield Problem(f"{place}.write", what, "Declare key=… of the value, or route by Header(…)")


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
