"""What is wrong with pipelines together, or with a pipeline in an environment, though each is valid by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from frazil.declaration.catalogs import Catalog, GlueCatalog, RestCatalog
from frazil.declaration.engines import Tableflow
from frazil.declaration.environment import Environment
from frazil.declaration.pipeline import Pipeline, folded
from frazil.declaration.problems import Problem


def check(pipelines: Sequence[Pipeline], environment: Environment | None = None) -> tuple[Problem, ...]:
    """Return all problems of the pipelines together, and of each in the environment if one is given."""
    problems = [*_clashes(pipelines)]
    if environment is not None:
        problems += _misfits(pipelines, environment)
    return tuple(problems)


def _clashes(pipelines: Sequence[Pipeline]) -> Iterator[Problem]:
    for index, pipeline in enumerate(pipelines):
        path, identifier = f"pipelines[{index}]", pipeline.table.identifier
        for other_index, other in enumerate(pipelines):
            if identifier == other.table.dead_letters:
                what = f"{identifier} is where pipelines[{other_index}] ({other.name}) keeps its dead letters"
                yield Problem(f"{path}.table.identifier", what, "Choose another table")
            if other_index >= index:
                continue
            if pipeline.name == other.name:
                yield _same_name(path, pipeline, other_index, other)
            if identifier == other.table.identifier:
                what = f"pipelines[{other_index}] ({other.name}) already writes {identifier}; a table has one writer"
                yield Problem(f"{path}.table.identifier", what, "Choose another table")
    yield from _tableflow_namespaces(pipelines)


def _tableflow_namespaces(pipelines: Sequence[Pipeline]) -> Iterator[Problem]:
    """Yield conflicts of namespaces: a cluster has one integration with Glue, which publishes all of its tables in one database."""
    flowing = [(index, p) for index, p in enumerate(pipelines) if isinstance(p.engine, Tableflow)]
    for index, pipeline in flowing:
        first_index, first = flowing[0]
        if pipeline.table.namespace != first.table.namespace:
            what = f"pipelines[{first_index}] ({first.name}) has Tableflow publish in {first.table.namespace}"
            yield Problem(f"pipelines[{index}].table.identifier", what, "Choose the same namespace")
    ours = {p.table.namespace for p in pipelines if not isinstance(p.engine, Tableflow)}
    for index, pipeline in flowing:
        if pipeline.table.namespace in ours:
            what = f"{pipeline.table.namespace} has tables of Frazil, and Confluent's role may write to its complete namespace"
            yield Problem(f"pipelines[{index}].table.identifier", what, "Choose a namespace for Tableflow alone")


def _same_name(path: str, pipeline: Pipeline, other_index: int, other: Pipeline) -> Problem:
    topics = (pipeline.topic.name, other.topic.name)
    if topics[0] != topics[1] and folded(topics[0]) == folded(topics[1]) == pipeline.name:
        what = f"the topics {topics[1]} (pipelines[{other_index}]) and {topics[0]} both fold to {pipeline.name}"
        return Problem(f"{path}.name", what, "Name one of the pipelines yourself")
    return Problem(f"{path}.name", f"pipelines[{other_index}] has the name {pipeline.name} too", "Choose another name")


def _misfits(pipelines: Sequence[Pipeline], environment: Environment) -> Iterator[Problem]:
    for index, pipeline in enumerate(pipelines):
        path = f"pipelines[{index}]"
        for place, field in enumerate(pipeline.table.partition_fields):
            if "." in field.source and _is_glue(environment.catalog):
                what = f"{field.source} is a nested field, and Glue partitions by columns only"
                do = "Use a column; metadata_columns flat makes one of each fact"
                yield Problem(f"{path}.table.partition_by[{place}]", what, do)
        if environment.registry is None:
            for name in ("value_format", "key_format"):
                if (kind := getattr(pipeline.topic, name)).has_schema:
                    what = f"format {kind} needs a schema registry, and the environment {environment.name} has none"
                    yield Problem(f"{path}.topic.{name}", what, "Add registry to the environment's document")


def _is_glue(catalog: Catalog) -> bool:
    """Return if Glue is the catalog: by its own API, or by its REST endpoint."""
    return isinstance(catalog, GlueCatalog) or (isinstance(catalog, RestCatalog) and catalog.signing_name == "glue")
