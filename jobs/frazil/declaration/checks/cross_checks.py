"""The problems of pipelines together, or of a pipeline in an environment, though each is valid by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from frazil.declaration.catalogs import GlueCatalog, RestCatalog
from frazil.declaration.checks.problems import Problem
from frazil.declaration.engines import Tableflow
from frazil.declaration.environment import Environment
from frazil.declaration.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class Listed:
    """A pipeline in the list that declares it; `place` is its file, or empty.

    `of` is the list: `pipelines`, or `patterns` and `types` for what the topics or types of a pattern share.
    """

    index: int
    pipeline: Pipeline
    place: str = ""
    of: str = "pipelines"

    @property
    def path(self) -> str:
        """The place of the pipeline's problems."""
        return f"{self.place}: {self.of}[{self.index}]" if self.place else f"{self.of}[{self.index}]"

    def __str__(self) -> str:
        """The pipeline, as a problem of another one names it."""
        facts = ", ".join(filter(None, (self.pipeline.name, self.place)))
        return f"pipelines[{self.index}] ({facts})"


def union_view(view: str, tables: Iterable[str]) -> str:
    """Return the SQL of a view that reads several tables as one."""
    return f"create view {view} as " + " union all ".join(" ".join(("select * from", table)) for table in tables)


def check(pipelines: Sequence[Pipeline], environment: Environment | None = None) -> tuple[Problem, ...]:
    """Return all problems of the pipelines together, and of each in the environment if one is given."""
    listed = [Listed(index, pipeline) for index, pipeline in enumerate(pipelines)]
    return (*clashes(listed), *(misfits(listed, environment) if environment is not None else ()))


def clashes(listed: Sequence[Listed]) -> Iterator[Problem]:
    """Yield the problems of the pipelines together."""
    for index, one in enumerate(listed):
        path, identifier = f"{one.path}.table.identifier", one.pipeline.table.identifier
        for other_index, other in enumerate(listed):
            if identifier == other.pipeline.table.dead_letters:
                what = f"{identifier} is where {other} keeps its dead letters"
                yield Problem(path, what, "Choose another table")
            if other_index >= index:
                continue
            if one.pipeline.name == other.pipeline.name:
                what = f"{other} has the name {one.pipeline.name} too"
                yield Problem(f"{one.path}.name", what, "Name one of the two")
            if identifier == other.pipeline.table.identifier:
                what = f"{other} already writes {identifier}; a table has one writer"
                view = union_view(identifier, (f"{identifier}_{number}" for number in (1, 2)))
                is_other = one.pipeline.topic.name != other.pipeline.topic.name
                more = f", and read both by a view: {view}" if is_other else ""
                yield Problem(path, what, f"Choose another table{more}")
    yield from _tableflow_namespaces(listed)


def type_clashes(patterns: Sequence[Listed]) -> Iterator[Problem]:
    """Yield the patterns of types whose topic an earlier one has: a new type would be of both, and land in one."""
    first: dict[str, Listed] = {}
    for one in patterns:
        earlier, topic = first.setdefault(one.pipeline.topic.name, one), one.pipeline.topic.name
        if earlier is not one:
            what = f"another route of topic {topic} has new types already: {_new_types(earlier)}"
            do = f"Name each type of {_new_types(one)} in `to`, or write all patterns of the topic in one entry"
            yield Problem(f"{one.path}.pipeline.shape.route.new_types", what, do)


def _new_types(of: Listed) -> str:
    route = of.pipeline.shape.route
    return ", ".join((route.new_types if route is not None else None) or ())


def _tableflow_namespaces(listed: Sequence[Listed]) -> Iterator[Problem]:
    """Yield conflicts of namespaces: a cluster has one integration with Glue, which publishes all of its tables in one database."""
    flowing = [one for one in listed if isinstance(one.pipeline.engine, Tableflow)]
    for one in flowing:
        namespace = flowing[0].pipeline.table.namespace
        if one.pipeline.table.namespace != namespace:
            what = f"{flowing[0]} has Tableflow publish in {namespace}"
            yield Problem(f"{one.path}.table.identifier", what, "Choose the same namespace")
    ours = {one.pipeline.table.namespace: one for one in listed if not isinstance(one.pipeline.engine, Tableflow)}
    for one in flowing:
        namespace = one.pipeline.table.namespace
        if namespace in ours:
            what = (
                f"{namespace} has the table of {ours[namespace]}, "
                "and Confluent's role may write to its complete namespace"
            )
            yield Problem(f"{one.path}.table.identifier", what, "Choose a namespace for Tableflow alone")


def misfits(listed: Iterable[Listed], environment: Environment) -> Iterator[Problem]:
    """Yield the problems of each pipeline in the environment."""
    catalog = environment.catalog  # Glue by its own API, or by its REST endpoint
    is_glue = isinstance(catalog, GlueCatalog) or (isinstance(catalog, RestCatalog) and catalog.signing_name == "glue")
    for one in listed:
        for place, field in enumerate(one.pipeline.table.partition_fields):
            if "." in field.source and is_glue:
                what = f"{field.source} is a nested field, and Glue partitions by columns only"
                do = "Use a column; metadata_columns flat makes one of each fact"
                yield Problem(f"{one.path}.table.partition_by[{place}]", what, do)
        if environment.registry is None:
            for name, of in (("value", one.pipeline.topic.value), ("key", one.pipeline.topic.key)):
                if of.needs_registry:
                    what = f"format {of.kind} needs a schema registry, and the environment {environment.name} has none"
                    do = "Add registry to the environment's document, or declare the schema"
                    yield Problem(f"{one.path}.topic.{name}", what, do)
