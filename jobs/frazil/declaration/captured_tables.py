"""The pipelines of several tables that one connector captures: `Debezium().tables(…)`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Required, TypedDict

from frazil.declaration.checks.constraints import below, matching, shown, unknown
from frazil.declaration.checks.problems import InvalidDeclaration, Problem
from frazil.declaration.checks.validation import root_of, value_problems
from frazil.declaration.engines import LandingEngine
from frazil.declaration.envelopes import Envelope
from frazil.declaration.options import (
    ErrorMode,
    Framing,
    Isolation,
    JsonColumns,
    KeyFormat,
    MetadataColumns,
    SchemaEvolution,
    SubjectStrategy,
    UnknownFields,
    ValueFormat,
)
from frazil.declaration.pipeline import Pipeline, folded
from frazil.declaration.schema_file import SchemaFile
from frazil.declaration.start import Start
from frazil.declaration.table import Table
from frazil.declaration.topic import Topic
from frazil.declaration.write_modes import WriteMode


class Choices(TypedDict, total=False):
    """The fields of `Topic`, `Table` and `Pipeline` that several pipelines can share."""

    value_format: ValueFormat | str
    key_format: KeyFormat | str
    columns: tuple[str, ...] | None
    key_columns: tuple[str, ...] | None
    schema: str | tuple[str | SchemaFile, ...] | None
    key_schema: str | tuple[str | SchemaFile, ...] | None
    framing: Framing | str | None
    key_framing: Framing | str | None
    unknown_fields: UnknownFields | str | None
    subject_strategy: SubjectStrategy | str
    record_name: str | None
    key_record_name: str | None
    transactional: bool
    partition_by: tuple[str, ...]
    sort_by: tuple[str, ...]
    format_version: int
    target_file_size_bytes: int
    metadata_columns: MetadataColumns | str
    json_columns: JsonColumns | str | None
    properties: Mapping[str, str]
    schema_evolution: SchemaEvolution | str
    keep_snapshots: int
    keep_days: int | None
    group: str | None
    write: WriteMode | str
    engine: LandingEngine | str
    start: Start | str
    on_error: ErrorMode | str
    max_rejected_percent: int | None
    headers: bool
    isolation: Isolation | str
    kafka_options: Mapping[str, str]


class Overrides(Choices, total=False):
    """What one table has instead of what all share, and the names that are derived otherwise."""

    name: str
    identifier: str


class Shared(Choices, total=False):
    """The named arguments of `Debezium.tables`."""

    namespace: Required[str]
    overrides: Mapping[str, Overrides]


_PREFIX = Annotated[
    str,
    matching("[a-zA-Z0-9._-]+", "a topic prefix", "Write the connector's topic.prefix, of a-z, A-Z, 0-9, . _ and -"),
]
_TABLE = Annotated[
    str,
    matching(
        r"[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)+",
        "a table with its schema or database",
        "Write what follows the prefix in the topic's name, like public.orders, and no pattern",
    ),
]
_NAMESPACE = Annotated[str, matching("[a-z0-9_]{1,255}", "a namespace", "Use 1 to 255 of a-z, 0-9 and _")]
_OF_TOPIC, _OF_TABLE, _OF_PIPELINE = (
    tuple(field.name for field in fields(cls) if field.name not in left_out)
    for cls, left_out in (
        (Topic, {"name"}),
        (Table, {"identifier"}),
        (Pipeline, {"topic", "table", "name", "envelope"}),
    )
)
_NAMES = ("name", "identifier")
SHARED = (*_OF_TOPIC, *_OF_TABLE, *_OF_PIPELINE)
"""The names of the fields in `Choices`."""


@dataclass(frozen=True, slots=True)
class _Captured:
    """One table of the connector, and what its pipeline is made of. `own` are its overrides."""

    source: str
    topic: str
    name: str
    identifier: str
    own: Mapping[str, Any]


def pipelines(
    envelope: Envelope, prefix: str, tables: Sequence[str], arguments: Mapping[str, Any]
) -> tuple[Pipeline, ...]:
    """Return a pipeline for each table. Raises `InvalidDeclaration` with the problems of all."""
    problems = [*_argument_problems(prefix, tables, arguments)]
    captured = [*_captured(prefix, tables, arguments)]
    problems += _clashes(captured)
    made: list[Pipeline] = []
    found: dict[Problem, list[_Captured]] = {}
    for one in captured:
        try:
            made.append(_pipeline(one, envelope, arguments))
        except InvalidDeclaration as invalid:
            for problem in invalid.problems:
                found.setdefault(problem.moved("pipeline.", ""), []).append(one)
    problems += _placed(found, len(captured))
    if problems:
        raise InvalidDeclaration(problem.moved("", root_of(type(envelope))) for problem in problems)
    return tuple(made)


def _pipeline(one: _Captured, envelope: Envelope, arguments: Mapping[str, Any]) -> Pipeline:
    values = {**arguments, **one.own}
    topic, table, own = (
        {name: values[name] for name in names if name in values} for names in (_OF_TOPIC, _OF_TABLE, _OF_PIPELINE)
    )
    return Pipeline(
        name=one.name, topic=Topic(one.topic, **topic), table=Table(one.identifier, **table), envelope=envelope, **own
    )


def _argument_problems(prefix: object, tables: Sequence[object], arguments: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with the arguments of the call, and with the names in the overrides."""
    yield from value_problems(_PREFIX, prefix, ".tables.prefix")
    if not tables:
        yield Problem(".tables", "no table is named", 'Write those of the connector, like "public.orders"')
    for index, table in enumerate(tables):
        yield from value_problems(_TABLE, table, f".tables[{index}]")
        if table in tables[:index]:
            yield Problem(f".tables[{index}]", f"{shown(table)} is given twice", "Remove one of the two")
    for name in arguments:
        if name not in (*SHARED, "namespace", "overrides"):
            yield Problem(below(".tables", name), *unknown(name, ("namespace", "overrides", *SHARED)))
    if "namespace" in arguments:
        yield from value_problems(_NAMESPACE, arguments["namespace"], ".tables.namespace")
    else:
        yield Problem(".tables.namespace", "the field is missing", "Write the namespace of the tables")
    wrong = value_problems(Mapping[str, Mapping[str, object]], arguments.get("overrides", {}), ".tables.overrides")
    yield from wrong
    for table, own in {}.items() if wrong else arguments.get("overrides", {}).items():
        path = f".tables.overrides[{shown(table)}]"
        if table not in tables:
            yield Problem(path, *unknown(table, [*filter(_is_table, tables)], "table"))
        for name in own:
            if name not in (*_NAMES, *SHARED):
                yield Problem(below(path, name), *unknown(name, (*_NAMES, *SHARED)))


def _is_table(value: object) -> bool:
    return not value_problems(_TABLE, value, "")


def _captured(prefix: object, tables: Sequence[Any], arguments: Mapping[str, Any]) -> Iterator[_Captured]:
    """Yield each valid table once; what is no prefix or namespace is a problem of the call, and hides none of a table."""
    namespace, overrides = arguments.get("namespace"), arguments.get("overrides")
    start = "x" if value_problems(_PREFIX, prefix, "") else prefix
    place = "x" if value_problems(_NAMESPACE, namespace, "") else namespace
    for table in dict.fromkeys(filter(_is_table, tables)):
        own = overrides.get(table) if isinstance(overrides, Mapping) else None
        own = own if isinstance(own, Mapping) else {}
        topic = f"{start}.{table}"
        yield _Captured(
            source=table,
            topic=topic,
            name=own.get("name", folded(topic)),
            identifier=own.get("identifier", f"{place}.{folded(table.rpartition('.')[2])}"),
            own=own,
        )


def _clashes(captured: Sequence[_Captured]) -> Iterator[Problem]:
    """Yield one problem for each table that gets a name of an earlier one."""
    taken: dict[tuple[str, str], str] = {}
    for one in captured:
        said = {"name": "the pipeline's name", "identifier": "the table"}
        values = {name: getattr(one, name) for name in _NAMES if isinstance(getattr(one, name), str)}
        same = {name: value for name, value in values.items() if (name, value) in taken}
        if same:
            what = " and ".join(f"{said[name]} {value} of {taken[name, value]}" for name, value in same.items())
            do = ", ".join(f'"{name}": …' for name in same)
            path = f".tables[{shown(one.source)}]"
            yield Problem(path, f"it gets {what}", f'Write overrides={{"{one.source}": {{{do}}}}}')
        for name, value in values.items():
            taken.setdefault((name, value), one.source)


def _placed(found: Mapping[Problem, Sequence[_Captured]], count: int) -> Iterator[Problem]:
    """Yield each problem at its table, or once if it is of an argument that all tables share."""
    for problem, where in found.items():
        path = re.sub(r"^(topic|table)\.(?!name\b)", "", problem.path)
        field = re.split(r"[.\[]", path)[0]
        if len(where) == count and field in SHARED and not any(field in one.own for one in where):
            yield problem.moved(problem.path, f".tables.{path}")
            continue
        for one in where:
            yield problem.moved(problem.path, f".tables[{shown(one.source)}].{path}")
