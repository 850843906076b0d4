"""The pipelines of patterns, from the topics of a cluster and the tables of a catalog."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

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

    `refused` says why a topic, or the rest of a pattern's topics, has none. `unread` are for tables of which no topic is known, as
    they cannot be read: each has the name of its table in place of the topic's.
    """

    pipelines: tuple[Pipeline, ...] = ()
    gone: tuple[Pipeline, ...] = ()
    refused: Mapping[str, FrazilError] = field(default_factory=dict)
    unread: tuple[Pipeline, ...] = ()

    @property
    def with_tables(self) -> tuple[Pipeline, ...]:
        """The pipelines of tables, if no topics were looked for."""
        return (*self.gone, *self.unread)


Owners = Mapping[str, "str | FrazilError"]
"""The topics of tables by identifier, or why a table cannot be read."""


def matched(
    patterns: Sequence[TopicPattern], topics: Collection[str], declared: Iterable[Pipeline], owners: Owners
) -> Matched:
    """Return the pipelines of patterns, where `topics` exist.

    A declared pipeline has its topic before each pattern, and a pattern before those after it. A topic that has its table keeps
    it, so that a new one takes neither its table nor its place below the bound.
    """
    writers = [*declared]
    taken = {pipeline.topic.name for pipeline in writers}
    live, gone, refused = list[Pipeline](), list[Pipeline](), dict[str, FrazilError]()
    stored = {table: topic for table, topic in owners.items() if isinstance(topic, str)}
    unread = {table: error for table, error in owners.items() if isinstance(error, FrazilError)}
    for pattern in patterns:
        own = {topic for topic in {*topics, *stored.values()} - taken if pattern.matches(topic)}
        old = {topic for topic in own if stored.get(pattern.identifier(topic)) == topic}
        found = sorted(own & {*topics, *old}, key=lambda topic: (topic not in old, topic))
        taken.update(found)
        tables = Counter(map(pattern.identifier, found))
        room = pattern.most
        for topic in found:
            room -= topic in topics
            if topic in topics and room < 0:
                number = sum(1 for one in found if one in topics)
                what = f"the pattern {pattern.match} matches {number} topics, and most is {pattern.most}"
                refused[topic] = InvalidInput(what, where=f"topic {topic}", do="Raise most, or exclude topics")
                continue
            try:
                pipeline = pattern.pipeline_of(topic)
            except InvalidDeclaration as invalid:
                do = "Exclude it, or declare it as a pipeline"
                refused[topic] = InvalidInput(str(invalid), where=f"topic {topic}", do=do)
                continue
            table = pipeline.table.identifier
            if table in unread and tables[table] > 1:
                refused[topic] = unread[table]
            elif refusal := _collision(pipeline, writers, stored):
                refused[topic] = refusal
            else:
                writers.append(pipeline)
                (live if topic in topics else gone).append(pipeline)
    known = {name for pipeline in writers for name in pipeline.tables}
    lost = (_unread(patterns, table) for table in sorted(unread) if table not in known)
    return Matched(tuple(live), tuple(gone), refused, tuple(lost))


def _unread(patterns: Iterable[TopicPattern], table: str) -> Pipeline:
    namespace, _, name = table.partition(".")
    shared = next(one.pipeline for one in patterns if one.namespace == namespace)
    topic, at = replace(shared.topic, name=name), replace(shared.table, identifier=table)
    return replace(shared, topic=topic, table=at, name=name)


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
        owners = self._owners_now()
        found = matched(self.patterns, names, self._declared, owners)
        is_known = all(isinstance(owner, str) for owner in owners.values())
        self._seen = names if is_known else None  # else the next look reads the others again
        live, gone, lost = (
            tuple(one for one in some if self._is_wanted(one.name))
            for some in (found.pipelines, found.gone, found.unread)
        )
        refused = {topic: why for topic, why in found.refused.items() if self._is_wanted(self._name(topic))}
        return Matched(live, gone, refused, lost)

    def _name(self, topic: str) -> str:
        """Return the name of the pipeline that a topic would have."""
        pattern = next(one for one in self.patterns if one.matches(topic))
        return pattern.identifier(topic).partition(".")[2]

    def _owners_now(self) -> Owners:
        """Return the topics of tables, as their ledgers say. That of a table stays what it was in an earlier look."""
        declared = {name for pipeline in self._declared for name in pipeline.tables}
        tables = set[str]().union(*(self._lake.tables(space) for space in {one.namespace for one in self.patterns}))
        unknown = sorted(t for t in tables - declared - self._owners.keys() if not t.endswith(DEAD_LETTERS_SUFFIX))
        found: dict[str, str | FrazilError] = {}
        if unknown:
            with ThreadPoolExecutor(PARALLEL, thread_name_prefix="tables") as threads:
                found = dict(zip(unknown, threads.map(self._owner, unknown), strict=True))
        self._owners |= {table: owner for table, owner in found.items() if owner and isinstance(owner, str)}
        unread = {table: owner for table, owner in found.items() if not isinstance(owner, str)}
        return {table: topic for table, topic in self._owners.items() if table in tables} | unread

    def _owner(self, identifier: str) -> str | FrazilError:
        """Return the topic of a table, empty if it has none, or why it cannot be read."""
        try:
            table = self._lake.table(identifier)
            commit = None if table is None else table.newest(identifier.partition(".")[2])
            return commit.entry.end.topic if commit is not None and commit.entry.end is not None else ""
        except FrazilError as error:
            return error
