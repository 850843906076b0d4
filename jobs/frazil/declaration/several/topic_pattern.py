"""The pipelines of the topics whose names match a pattern: `each_topic(…)`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from typing import Annotated, Any

from frazil.declaration.checks.constraints import Rule, below, between, shown, unknown
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import InvalidDeclaration, Problem, Refusal
from frazil.declaration.engines import Spark
from frazil.declaration.pipeline import Pipeline
from frazil.declaration.several.captured_tables import OF_PIPELINE, OF_TABLE, OF_TOPIC
from frazil.declaration.several.table_template import filled, placeholders, template_refusal
from frazil.declaration.start import At, Earliest
from frazil.declaration.table import Table
from frazil.declaration.topic import Topic

EXAMPLE = "topic"
"""The name of topic and table in the pipeline that all topics of a pattern share."""
INTERNAL = "_"
"""The first character of the names of internal topics, such as `__consumer_offsets` and `_schemas`."""
_SHARED = (*OF_TOPIC, *OF_TABLE, "envelope", *OF_PIPELINE)


def _expression_refusal(text: str) -> Refusal | None:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        return Refusal(f"{shown(text)} is not a regular expression: {error}", r"Write one like 'shop\..*'")
    return None


def _table_refusal(text: str) -> Refusal | None:
    return template_refusal(text, EXAMPLE)


_EXPRESSION = Rule(_expression_refusal)


@declared
class TopicPattern:
    """Topics by a pattern of their names, those to come included. Each becomes a pipeline of its own."""

    match: Annotated[str, "A regular expression of Python that a topic's complete name matches.", _EXPRESSION] = field(
        kw_only=False
    )
    table: Annotated[
        str,
        "The identifier of a topic's table: {topic} is replaced by the topic's name, {name} by a group (?P<name>…) of the pattern.",
        Rule(_table_refusal),
    ]
    pipeline: Annotated[Pipeline, "What all topics share: the pipeline of a topic and a table that are named `topic`."]
    exclude: Annotated[str | None, "A regular expression of names that do not match.", _EXPRESSION] = None
    most: Annotated[int, "The most topics that become tables.", between(1, 1000)] = 100

    def _contradictions(self) -> Iterator[Problem]:
        try:
            groups = re.compile(self.match).groupindex
        except (re.error, RecursionError, OverflowError):
            return
        if "topic" in groups:
            yield Problem("match", "{topic} is the topic's name, and no group", "Give the group another name")
        for name in placeholders(self.table):
            if name != "topic" and name not in groups:
                yield Problem("table", *unknown(name, ("topic", *groups), "placeholder"))
        if not isinstance(self.pipeline.start, Earliest | At):
            what = f"with {self.pipeline.start.kind} the first records of a topic that is made later would be lost"
            yield Problem("pipeline.start", what, "Choose earliest or a timestamp")
        if not isinstance(self.pipeline.engine, Spark):
            yield Problem("pipeline.engine", f"{self.pipeline.engine.kind} needs the names of topics", "Choose spark")
        if self.pipeline.table.namespace != self.namespace:
            yield Problem(
                "pipeline.table.identifier", f"it is not in {self.namespace}", f"Write {self.namespace}.{EXAMPLE}"
            )

    @property
    def namespace(self) -> str:
        """The namespace of the tables."""
        return self.table.partition(".")[0]

    @property
    def prefix(self) -> str:
        """The literal text with which each matching name begins; empty if the pattern does not say."""
        return _literal_prefix(self.match)

    def matches(self, topic: str, record_type: str = "") -> bool:
        """Return whether a topic is one of these. Internal topics never are, nor is a type of records in one."""
        if record_type or topic.startswith(INTERNAL) or not re.fullmatch(self.match, topic):
            return False
        return self.exclude is None or not re.fullmatch(self.exclude, topic)

    def identifier(self, topic: str, record_type: str = "") -> str:
        """Return the identifier of a matching topic's table."""
        found = re.fullmatch(self.match, topic)
        values: dict[str, str | None] = {**(found.groupdict() if found else {}), "topic": topic}
        return filled(self.table, values)

    def pipeline_of(self, topic: str, record_type: str = "") -> Pipeline:
        """Return the pipeline of a matching topic. Raises `InvalidDeclaration` if its name makes no table."""
        shared = self.pipeline
        table = replace(shared.table, identifier=self.identifier(topic))
        return replace(shared, topic=replace(shared.topic, name=topic), table=table, name=table.name)


def each_topic(match: str, *, table: str, exclude: str | None = None, most: int = 100, **shared: Any) -> TopicPattern:
    r"""Return the topics whose complete names match a regular expression; `frazil run` finds them, new ones within a minute.

        each_topic(r"shop\..*", table="shop.{topic}", value="avro", exclude=r".*\.internal")

    Internal topics, whose names begin with `_`, never match. `table` names the table of each topic: `{topic}` is the topic's name,
    `{name}` what a group `(?P<name>…)` of the pattern matches, in lower case and with `_` for what no table's name may have.
    `most` bounds the number of tables. Other named arguments are the fields of `Topic`, `Table` and `Pipeline` that all share.

    Raises `InvalidDeclaration` with the problems of the call.
    """
    if problems := [
        Problem(below("each_topic", name), *unknown(name, _SHARED)) for name in shared if name not in _SHARED
    ]:
        raise InvalidDeclaration(problems)
    if refusal := None if not isinstance(table, str) else _table_refusal(table):
        raise InvalidDeclaration([Problem("each_topic.table", *refusal)])
    topic, own, rest = (
        {name: shared[name] for name in names if name in shared} for names in (OF_TOPIC, OF_TABLE, _REST)
    )
    try:
        pipeline = Pipeline(
            topic=Topic(EXAMPLE, **topic), table=Table(f"{str(table).partition('.')[0]}.{EXAMPLE}", **own), **rest
        )
        return TopicPattern(match, table=table, exclude=exclude, most=most, pipeline=pipeline)
    except InvalidDeclaration as invalid:
        raise InvalidDeclaration(_moved(invalid.problems)) from None


_REST = ("envelope", *OF_PIPELINE)


def _moved(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield problems with the arguments of `each_topic` as their places."""
    places = (
        "topic_pattern.pipeline.",
        "topic_pattern.",
        "pipeline.topic.",
        "pipeline.table.",
        "pipeline.",
        "topic.",
        "table.",
    )
    for problem in problems:
        known = next((place for place in places if problem.path.startswith(place)), "")
        yield problem.moved(known, "each_topic.") if known else problem


def _literal_prefix(expression: str) -> str:
    if "|" in re.sub(r"\\.|\([^()]*\)|\[[^\]]*\]", "", expression):
        return ""  # an alternative may begin otherwise
    prefix, rest = "", expression
    while found := re.match(r"\\?([-._])|([A-Za-z0-9])", rest):
        if found[0] == ".":
            break
        rest = rest[found.end() :]
        if rest[:1] in ("*", "?", "+", "{"):
            break
        prefix += found[1] or found[2]
    return prefix
