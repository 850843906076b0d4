"""The pipelines of new types of records in a routed topic: what `routes(…)` makes of `"shop.events.*": "shop.{type}"`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Annotated

from frazil.declaration.checks.constraints import Rule, between, unknown
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import Problem, Refusal
from frazil.declaration.engines import Spark
from frazil.declaration.formats import Avro, JsonSchema, Protobuf
from frazil.declaration.options import SubjectStrategy
from frazil.declaration.pipeline import Pipeline
from frazil.declaration.route import Route
from frazil.declaration.several.table_template import filled, placeholders, template_refusal
from frazil.declaration.start import At, Earliest

EXAMPLE = "type"
"""The type, and the name of the table, in the pipeline that all new types share."""
PLACEHOLDERS = ("type", "name")


def table_refusal(text: str) -> Refusal | None:
    """Return the refusal of a text that is not a template of the tables of types."""
    return template_refusal(text, EXAMPLE)


@declared
class TypePattern:
    """Types of a routed topic by a pattern, those to come included. Each becomes a pipeline of its own."""

    table: Annotated[
        str,
        "The identifier of a type's table: {type} is replaced by the type, {name} by its last part, after the last dot.",
        Rule(table_refusal),
    ]
    pipeline: Annotated[Pipeline, "What all types share: the pipeline of a type and a table that are named `type`."]
    most: Annotated[int, "The most types that become tables.", between(1, 1000)] = 100

    def _contradictions(self) -> Iterator[Problem]:
        route, value, start = self.pipeline.shape.route, self.pipeline.topic.value, self.pipeline.start
        if route is None or not route.new_types or route.types != (EXAMPLE,):
            yield Problem("pipeline.shape.route", "it has no new types", "Write routes(…)")
        for name in placeholders(self.table):
            if name not in PLACEHOLDERS:
                yield Problem("table", *unknown(name, PLACEHOLDERS, "placeholder"))
        is_listed = isinstance(value, Avro | JsonSchema | Protobuf)
        if is_listed and value.subject_strategy is not SubjectStrategy.TOPIC_RECORD:
            what = f"with subject_strategy {value.subject_strategy} the registry does not say which types the topic has"
            yield Problem("pipeline.topic.value", what, "Choose topic_record, or name each type")
        if not isinstance(start, Earliest | At):
            what = f"with {start.kind} the first records of a type that is registered later would be lost"
            yield Problem("pipeline.start", what, "Choose earliest or a timestamp")
        if not isinstance(self.pipeline.engine, Spark):
            yield Problem("pipeline.engine", f"{self.pipeline.engine.kind} needs the names of types", "Choose spark")
        if self.pipeline.table.namespace != self.namespace:
            what, do = f"it is not in {self.namespace}", f"Write {self.namespace}.{EXAMPLE}"
            yield Problem("pipeline.table.identifier", what, do)

    @property
    def namespace(self) -> str:
        """The namespace of the tables."""
        return self.table.partition(".")[0]

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.pipeline.topic.name

    @property
    def route(self) -> Route:
        """The route that all types share."""
        assert self.pipeline.shape.route is not None
        return self.pipeline.shape.route

    @property
    def match(self) -> str:
        """The types, as they are declared."""
        return ", ".join(self.route.new_types or ())

    def matches(self, topic: str, record_type: str = "") -> bool:
        """Return whether a type of records in a topic is one of these."""
        return topic == self.topic and bool(record_type) and self.route.is_new(record_type)

    def types_of(self, subjects: Collection[str]) -> Iterator[str]:
        """Yield the types among the subjects of a registry."""
        prefix = f"{self.topic}-"
        names = (subject.removeprefix(prefix) for subject in subjects if subject.startswith(prefix))
        yield from (name for name in names if self.matches(self.topic, name))

    def identifier(self, topic: str, record_type: str) -> str:
        """Return the identifier of a matching type's table."""
        return filled(self.table, {"type": record_type, "name": record_type.rpartition(".")[2]})

    def pipeline_of(self, topic: str, record_type: str) -> Pipeline:
        """Return the pipeline of a matching type. Raises `InvalidDeclaration` if its name makes no table."""
        shared = self.pipeline
        value = shared.topic.value
        assert isinstance(value, Avro | JsonSchema | Protobuf)
        table = replace(shared.table, identifier=self.identifier(topic, record_type))
        of_type = replace(shared.topic, value=replace(value, record_name=record_type))
        shape = replace(shared.shape, route=replace(self.route, types=(record_type,)))
        return replace(shared, topic=of_type, table=table, shape=shape, name=table.name)
