"""The check of connectors against the pipelines whose topics they write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from frazil.declaration.checks.problems import Problem
from frazil.declaration.envelopes import Debezium
from frazil.declaration.pipeline import Pipeline
from frazil.envelopes import converter_rules, event_rules, source_rules
from frazil.envelopes.connector import Connector
from frazil.envelopes.connector_rules import Fed, Found

RULES = (*converter_rules.RULES, *event_rules.RULES, *source_rules.RULES)
"""All rules, in the order of the page."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found: what is to be changed, and advice."""

    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]


def checked(connectors: Sequence[Connector], pipelines: Sequence[Pipeline]) -> Checked:
    """Return the problems of these connectors with the pipelines of change data that they feed."""
    problems, notes = list[Problem](), list[Problem]()
    writers: dict[str, str] = {}
    for each in connectors:
        found: dict[Found, list[str]] = {one: [] for one in _of_connector(each, pipelines)}
        for pipeline in _captured(each, pipelines):
            topic = pipeline.topic.name
            if writers.setdefault(topic, each.file) != each.file:
                found.setdefault(_second_writer(topic, writers[topic]), [])
            for one in _of_pipeline(each, pipeline):
                found.setdefault(one, []).append(pipeline.name)
        for one, names in found.items():
            of = f" (pipeline{'s' if len(names) > 1 else ''} {', '.join(names)})" if names else ""
            text = Problem(f"{each.file}: {one.setting}", f"{one.what}{of}", one.do)
            (notes if one.is_note else problems).append(text)
    return Checked(tuple(problems), tuple(notes))


def _captured(connector: Connector, pipelines: Sequence[Pipeline]) -> list[Pipeline]:
    if not connector.kind:  # its settings mean something else
        return []
    return [pipeline for pipeline in pipelines if connector.table_of(pipeline.topic.name) is not None]


def _of_connector(connector: Connector, pipelines: Sequence[Pipeline]) -> Iterator[Found]:
    """Yield what is wrong with a connector, whatever its rules say."""
    if connector.is_managed:
        what = f"{connector.stated('connector.class', 'nothing')}: settings of Confluent Cloud's own connectors are not checked"
        yield Found(setting="connector.class", what=what, do="Check them by docs/change-data.md", is_note=True)
        return
    if not connector.kind:
        what = f"{connector.stated('connector.class', 'nothing')}: it is no connector of Debezium's"
        yield Found(setting="connector.class", what=what, do="Name the file of a Debezium connector")
        return
    topics = {pipeline.topic.name: pipeline for pipeline in pipelines if pipeline.envelope is not None}
    for topic, content in connector.other_topics.items():
        if topic in topics:
            what = f"the topic {topic} has the connector's {content}, and {topics[topic].name} declares an envelope"
            yield Found(setting="topic.prefix", what=what, do="Declare the topic of a table")
    unwritten, doubt = list(_unwritten(connector, topics, pipelines)), connector.doubt
    if doubt is None:
        yield from unwritten
    elif unwritten or doubt.is_filled_in:
        what = f"{doubt.why}: it is not known for certain which topics the connector writes"
        yield Found(setting=doubt.setting, what=what, do="Check that it writes the declared topics", is_note=True)


def _unwritten(connector: Connector, topics: Iterable[str], pipelines: Sequence[Pipeline]) -> Iterator[Found]:
    """Yield which declared topics the connector seems not to write."""
    for topic in topics:
        if (table := connector.named_by(topic)) and connector.table_of(topic) is None:
            what = f"the connector does not capture {table}, whose topic {topic} is declared"
            yield Found(setting=_list(connector), what=what, do="Add the table, or remove the pipeline")
    if not _captured(connector, pipelines):
        what = f"{connector.stated('topic.prefix', 'nothing')}: the connector writes no declared topic that is known"
        do = "Check topic.prefix, the lists of tables and routers, or remove the file"
        yield Found(setting="topic.prefix", what=what, do=do)


def _of_pipeline(connector: Connector, pipeline: Pipeline) -> Iterator[Found]:
    if not isinstance(pipeline.envelope, Debezium):
        return
    table = connector.table_of(pipeline.topic.name)
    assert table is not None
    fed = Fed(connector, pipeline, table)
    for rule in RULES:
        yield from (_unless_filled_in(connector, found) for found in rule.check(fed))


def _unless_filled_in(connector: Connector, found: Found) -> Found:
    """Return what was found, or a note if the worker fills in the value."""
    if not connector.is_filled_in(found.setting):
        return found
    what = f"the worker fills in {found.setting}, so the setting is not checked"
    return replace(found, what=what, do="Check the value there by docs/change-data.md", is_note=True)


def _second_writer(topic: str, other: str) -> Found:
    what = f"the connector of {other} writes {topic}, too: no order is known between the changes of two connectors"
    return Found(setting="topic.prefix", what=what, do="Give each connector a prefix of its own")


def _list(connector: Connector) -> str:
    """Return the setting that says which tables the connector captures."""
    names = (f"{of}.{how}.list" for of in ("table", "schema", "database") for how in ("include", "exclude"))
    return next(filter(connector.value, names), "table.include.list")
