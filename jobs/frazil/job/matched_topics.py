"""The pipelines of patterns, from the topics of a cluster and the tables of a catalog."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from frazil.declaration import InvalidDeclaration, Pipeline
from frazil.declaration.several.topic_pattern import TopicPattern
from frazil.declaration.table import DEAD_LETTERS_SUFFIX
from frazil.errors import FrazilError, InvalidInput
from frazil.lake.read.stored_tables import Lake

PARALLEL = 8
"""Tables whose ledgers are read at a time."""


@dataclass(frozen=True, slots=True)
class Matched:
    """The pipelines of patterns: of topics that exist, and of those that do not exist any more and have a table.

    `refused` says why a topic, or the rest of a pattern's topics, has none.
    """

    pipelines: tuple[Pipeline, ...] = ()
    gone: tuple[Pipeline, ...] = ()
    refused: Mapping[str, InvalidInput] = field(default_factory=dict)


def matched(
    patterns: Sequence[TopicPattern], topics: Collection[str], declared: Iterable[Pipeline], stored: Mapping[str, str]
) -> Matched:
    """Return the pipelines of patterns. `topics` exist; `stored` are the topics of the tables that exist, by identifier.

    A declared pipeline has its topic before each pattern, and a pattern before those after it. A topic that has its table keeps
    it, so that a new one takes neither its table nor its place below the bound.
    """
    writers = [*declared]
    taken = {pipeline.topic.name for pipeline in writers}
    live, gone, refused = list[Pipeline](), list[Pipeline](), dict[str, InvalidInput]()
    for pattern in patterns:
        own = {topic for topic in {*topics, *stored.values()} - taken if pattern.matches(topic)}
        old = {topic for topic in own if stored.get(pattern.identifier(topic)) == topic}
        found = sorted(own & {*topics, *old}, key=lambda topic: (topic not in old, topic))
        taken.update(found)
        for topic in found[pattern.most :]:
            what = f"the pattern {pattern.match} matches {len(found)} topics, and most is {pattern.most}"
            refused[topic] = InvalidInput(what, where=f"topic {topic}", do="Raise most, or exclude topics")
        for topic in found[: pattern.most]:
            try:
                pipeline = pattern.pipeline_of(topic)
            except InvalidDeclaration as invalid:
                refused[topic] = InvalidInput(
                    str(invalid), where=f"topic {topic}", do="Exclude it, or declare it as a pipeline"
                )
                continue
            if refusal := _collision(pipeline, writers, stored):
                refused[topic] = refusal
                continue
            writers.append(pipeline)
            (live if topic in topics else gone).append(pipeline)
    return Matched(tuple(live), tuple(gone), refused)


def _collision(pipeline: Pipeline, writers: Iterable[Pipeline], stored: Mapping[str, str]) -> InvalidInput | None:
    """Return why a topic's table is another one's."""
    topic, mine = pipeline.topic.name, pipeline.table.identifier
    do = f"Exclude {topic}, and declare it as a pipeline with another table"
    if mine.endswith(DEAD_LETTERS_SUFFIX):
        what = f"{mine} is where a table keeps its dead letters"
        return InvalidInput(what, where=f"topic {topic}", do=do)
    for other in writers:
        if {*pipeline.tables} & {*other.tables} or pipeline.name == other.name:
            shared = f"the table {mine}" if mine in other.tables else f"the name {pipeline.name}"
            what = f"the topics {topic} and {other.topic.name} would both have {shared}"
            return InvalidInput(what, where=f"topic {topic}", do=do)
    if stored.get(mine, topic) != topic:
        what = f"{mine} is the table of the topic {stored[mine]}"
        return InvalidInput(what, where=f"topic {topic}", do=do)
    return None


class MatchedTopics:
    """The topics that match some patterns. `names` returns the names of the topics that exist.

    `is_wanted` says of a pipeline's name whether it is to run.
    """

    def __init__(
        self,
        patterns: Sequence[TopicPattern],
        declared: Iterable[Pipeline],
        lake: Lake,
        names: Callable[[], Collection[str]],
        *,
        is_wanted: Callable[[str], bool] = lambda name: True,
    ) -> None:
        self.patterns = patterns
        self._declared, self._lake, self._names, self._is_wanted = (*declared,), lake, names, is_wanted
        self._seen: frozenset[str] | None = None
        self._owners = dict[str, str]()

    def look(self) -> Matched:
        """Return the pipelines of the topics that match now. Raises `KafkaUnavailable` and `CatalogUnavailable`."""
        return self._matched(self._matching()) if self.patterns else Matched()

    def look_for_new(self) -> Matched | None:
        """Return what `look` does if other topics match than in the last one; it needs one request to Kafka otherwise."""
        names = self._matching()
        return None if names == self._seen else self._matched(names)

    def _matching(self) -> frozenset[str]:
        return frozenset(name for name in self._names() if any(one.matches(name) for one in self.patterns))

    def _matched(self, names: frozenset[str]) -> Matched:
        found = matched(self.patterns, names, self._declared, self._stored())
        self._seen = names
        live, gone = (tuple(p for p in some if self._is_wanted(p.name)) for some in (found.pipelines, found.gone))
        return Matched(
            live, gone, {topic: why for topic, why in found.refused.items() if self._is_wanted(self._name(topic))}
        )

    def _name(self, topic: str) -> str:
        """Return the name of the pipeline that a topic would have."""
        pattern = next(one for one in self.patterns if one.matches(topic))
        return pattern.identifier(topic).partition(".")[2]

    def _stored(self) -> Mapping[str, str]:
        """Return the topics of tables, as their ledgers say. That of a table stays what it was in an earlier look."""
        declared = {name for pipeline in self._declared for name in pipeline.tables}
        tables = set[str]().union(*(self._lake.tables(space) for space in {one.namespace for one in self.patterns}))
        unknown = sorted(t for t in tables - declared - self._owners.keys() if not t.endswith(DEAD_LETTERS_SUFFIX))
        self._owners |= self._read(unknown)
        return {table: topic for table, topic in self._owners.items() if table in tables}

    def _read(self, tables: Sequence[str]) -> dict[str, str]:
        if not tables:
            return {}
        with ThreadPoolExecutor(PARALLEL, thread_name_prefix="tables") as threads:
            return {
                table: topic for table, topic in zip(tables, threads.map(self._topic, tables), strict=True) if topic
            }

    def _topic(self, identifier: str) -> str:
        """Return the topic of a table; empty if it has none, or cannot be read: its pipeline reports why."""
        with suppress(FrazilError):
            table = self._lake.table(identifier)
            commit = None if table is None else table.newest(identifier.partition(".")[2])
            if commit is not None and commit.entry.end is not None:
                return commit.entry.end.topic
        return ""
