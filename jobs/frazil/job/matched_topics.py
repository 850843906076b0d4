"""The pipelines of patterns, from the topics of a cluster, the subjects of a registry and the tables of a catalog."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from frazil.declaration import InvalidDeclaration, Pipeline, RecordName, TopicPattern, TypePattern
from frazil.declaration.table import DEAD_LETTERS_SUFFIX
from frazil.errors import FrazilError, InvalidInput
from frazil.lake.layout import Layout, shapes
from frazil.lake.read.stored_tables import Lake

PARALLEL = 8
"""Tables whose ledgers are read at a time."""


Pattern = TopicPattern | TypePattern


class Source(NamedTuple):
    """What becomes a table: a topic, or a type of records in it."""

    topic: str
    type: str = ""

    def __str__(self) -> str:
        return f"{self.topic}, type {self.type}" if self.type else self.topic

    @property
    def noun(self) -> str:
        """What it is one of."""
        return "type" if self.type else "topic"

    @property
    def name(self) -> str:
        """Its own name."""
        return self.type or self.topic


def source_of(pipeline: Pipeline) -> Source:
    """Return what a pipeline of a pattern lands."""
    route = pipeline.shape.route
    return Source(pipeline.topic.name, route.types[0] if route is not None and route.types else "")


@dataclass(frozen=True, slots=True)
class Matched:
    """The pipelines of patterns: of topics and types that exist, and of those that do not exist any more and have a table.

    `refused` says why a topic or type has none. `unread` are for tables of which no topic is known, as
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


Owners = Mapping[str, "Source | FrazilError"]
"""The sources of tables by identifier, or why a table cannot be read."""


class _Turn(NamedTuple):
    """A topic or type that matches a pattern. `is_old`: it has its table. `is_shared`: others have the same one by the pattern.

    `too_many` is the number of matches if it is one above the bound, else 0.
    """

    pattern: Pattern
    source: Source
    is_old: bool
    is_shared: bool
    too_many: int


def matched(
    patterns: Sequence[Pattern],
    sources: Collection[Source],
    declared: Iterable[Pipeline],
    owners: Owners,
    last: Collection[Source] = (),
) -> Matched:
    """Return the pipelines of patterns, where `sources` exist. Those in `last` come after the others.

    A declared pipeline has its topic before each pattern, and a pattern before those after it. A topic or type that has its table
    keeps it, so that a new one, of whichever pattern, takes neither its table, its name nor its place below the bound.
    """
    writers = [*declared]
    taken = {Source(pipeline.topic.name) for pipeline in writers}
    live, gone, refused = list[Pipeline](), list[Pipeline](), dict[str, FrazilError]()
    stored = {table: source for table, source in owners.items() if isinstance(source, Source)}
    unread = {table: error for table, error in owners.items() if isinstance(error, FrazilError)}
    turns = list[_Turn]()
    for pattern in patterns:
        own = {source for source in {*sources, *stored.values()} - taken if pattern.matches(*source)}
        old = {source for source in own if stored.get(pattern.identifier(*source)) == source}
        found = sorted(own & {*sources, *old}, key=lambda source: (source not in old, source in last, source))
        taken.update(found)
        tables, existing = Counter(pattern.identifier(*source) for source in found), [s for s in found if s in sources]
        for source in found:
            is_one_too_many = source in existing[pattern.most :]
            is_shared = tables[pattern.identifier(*source)] > 1
            turns.append(_Turn(pattern, source, source in old, is_shared, len(existing) if is_one_too_many else 0))
    for turn in sorted(turns, key=lambda turn: not turn.is_old):
        source, pattern = turn.source, turn.pattern
        where, instead = f"topic {source}", _instead(source)
        if turn.too_many:
            what = f"the pattern {pattern.match} matches {turn.too_many} {source.noun}s, and most is {pattern.most}"
            refused[str(source)] = InvalidInput(what, where=where, do=f"Raise most. Otherwise: {instead}")
            continue
        try:
            pipeline = pattern.pipeline_of(*source)
        except InvalidDeclaration as invalid:
            refused[str(source)] = InvalidInput(str(invalid), where=where, do=instead)
            continue
        table = pipeline.table.identifier
        if table in unread and turn.is_shared:
            refused[str(source)] = unread[table]
        elif refusal := _collision(source, pipeline, writers, stored):
            refused[str(source)] = refusal
        else:
            writers.append(pipeline)
            (live if source in sources else gone).append(pipeline)
    known = {name for pipeline in writers for name in pipeline.tables}
    lost = (_unread(patterns, table) for table in sorted(unread) if table not in known)
    return Matched(tuple(live), tuple(gone), refused, tuple(lost))


def _instead(source: Source) -> str:
    """Return what to do with a topic or type that cannot have a table by its pattern."""
    if source.type:
        wrong = "If the type is wrong, delete its subject, also permanently (`?permanent=true`)"
        return f"Name {source.type} in `to`, with another table. {wrong}"
    return f"Exclude {source.topic}, and declare it as a pipeline with another table"


def _unread(patterns: Iterable[Pattern], table: str) -> Pipeline:
    namespace, _, name = table.partition(".")
    pattern = next(one for one in patterns if one.namespace == namespace)
    at = replace(pattern.pipeline.table, identifier=table)
    if isinstance(pattern, TypePattern):
        return replace(pattern.pipeline, table=at, name=name)
    return replace(pattern.pipeline, topic=replace(pattern.pipeline.topic, name=name), table=at, name=name)


def _collision(
    source: Source, pipeline: Pipeline, writers: Iterable[Pipeline], stored: Mapping[str, Source]
) -> InvalidInput | None:
    """Return why the table of a topic or type is another one's."""
    mine, where, do = pipeline.table.identifier, f"topic {source}", _instead(source)
    if mine.endswith(DEAD_LETTERS_SUFFIX):
        return InvalidInput(f"{mine} is where a table keeps its dead letters", where=where, do=do)
    for writer in writers:
        if {*pipeline.tables} & {*writer.tables} or pipeline.name == writer.name:
            other = source_of(writer)
            shared = f"the table {mine}" if mine in writer.tables else f"the name {pipeline.name}"
            both = f"{source.noun}s {source.name} and {other.name}"
            if source.name == other.name:
                both = f"{source.noun}s {source} and {other}"
            elif source.noun != other.noun:
                both = f"{source.noun} {source.name} and the {other.noun} {other.name}"
            return InvalidInput(f"the {both} would both have {shared}", where=where, do=do)
    if stored.get(mine, source) != source:
        return InvalidInput(f"{mine} is the table of the topic {stored[mine]}", where=where, do=do)
    return None


class MatchedTopics:
    """The topics and types that match some patterns. `names` returns the names of the topics that exist.

    `subjects` returns the subjects of the registry, with `deleted=True` softly deleted ones, too. Without it no types are looked
    for, and those with a table are as topics that do not exist any more. `is_wanted` says of a pipeline's name whether it is to
    run.
    """

    def __init__(
        self,
        patterns: Sequence[Pattern],
        declared: Iterable[Pipeline],
        lake: Lake,
        names: Callable[[], Collection[str]],
        *,
        subjects: Callable[..., Collection[str]] | None = None,
        is_wanted: Callable[[str], bool] = lambda name: True,
    ) -> None:
        self.patterns = patterns
        self._declared, self._lake, self._names, self._is_wanted = (*declared,), lake, names, is_wanted
        self._subjects = subjects
        self._types = tuple(one for one in patterns if isinstance(one, TypePattern))
        self._seen: frozenset[Source] | None = None
        self._deleted: frozenset[Source] = frozenset()
        self._owners = dict[str, Source]()

    def look(self) -> Matched:
        """Return the pipelines of the topics and types that match now.

        Raises `KafkaUnavailable`, `RegistryUnavailable` and `CatalogUnavailable`.
        """
        return self._matched(self._matching()) if self.patterns else Matched()

    def look_for_new(self) -> Matched | None:
        """Return what `look` does if others match than in the last one; it asks Kafka and the registry otherwise."""
        sources = self._matching()
        return None if sources == self._seen else self._matched(sources)

    def _matching(self) -> frozenset[Source]:
        found = set[Source]()
        if len(self._types) < len(self.patterns):
            found = {Source(name) for name in self._names() if any(one.matches(name) for one in self.patterns)}
        if self._types and self._subjects is not None:
            every, known = (self._types_of(self._subjects(deleted=deleted)) for deleted in (True, False))
            self._deleted = frozenset(every - known)
            found |= every | known
        return frozenset(found)

    def _types_of(self, subjects: Collection[str]) -> set[Source]:
        return {Source(one.topic, name) for one in self._types for name in one.types_of(subjects)}

    def _matched(self, sources: frozenset[Source]) -> Matched:
        owners = self._owners_now()
        # A topic may have records of a type whose subject is deleted.
        kept = {one for one in owners.values() if isinstance(one, Source) and one.type} if self._subjects else set()
        found = matched(self.patterns, {*sources, *kept}, self._declared, owners, self._deleted)
        is_known = all(isinstance(owner, Source) for owner in owners.values())
        self._seen = sources if is_known else None  # else the next look reads the others again
        live, gone, lost = (
            tuple(one for one in some if self._is_wanted(one.name))
            for some in (found.pipelines, found.gone, found.unread)
        )
        named = {str(one): one for one in (*sources, *owners.values()) if isinstance(one, Source)}
        refused = {text: why for text, why in found.refused.items() if self._is_wanted(self._name(named[text]))}
        return Matched(live, gone, refused, lost)

    def _name(self, source: Source) -> str:
        """Return the name of the pipeline that a topic or type would have."""
        pattern = next(one for one in self.patterns if one.matches(*source))
        return pattern.identifier(*source).partition(".")[2]

    def _owners_now(self) -> Owners:
        """Return the sources of tables, as these say. That of a table stays what it was in an earlier look."""
        declared = {name for pipeline in self._declared for name in pipeline.tables}
        tables = set[str]().union(*(self._lake.tables(space) for space in {one.namespace for one in self.patterns}))
        unknown = sorted(t for t in tables - declared - self._owners.keys() if not t.endswith(DEAD_LETTERS_SUFFIX))
        found: dict[str, Source | FrazilError | None] = {}
        if unknown:
            with ThreadPoolExecutor(PARALLEL, thread_name_prefix="tables") as threads:
                found = dict(zip(unknown, threads.map(self._owner, unknown), strict=True))
        self._owners |= {table: owner for table, owner in found.items() if isinstance(owner, Source)}
        unread = {table: owner for table, owner in found.items() if isinstance(owner, FrazilError)}
        return {table: source for table, source in self._owners.items() if table in tables} | unread

    def _owner(self, identifier: str) -> Source | FrazilError | None:
        """Return the topic of a table, and the type if it has one; None if no run has landed in it; or why it cannot be read."""
        try:
            table = self._lake.table(identifier)
            commit = None if table is None else table.newest(identifier.partition(".")[2])
            if table is None or commit is None or commit.entry.end is None:
                return None
            topic = commit.entry.end.topic
            return Source(topic, type_in(table.layout) if any(one.topic == topic for one in self._types) else "")
        except FrazilError as error:
            return error


def type_in(actual: Layout) -> str:
    """Return the type of the records in a table, if it has one type by its route; empty otherwise."""
    route = shapes(actual)[-1].get("route") or {}
    types = route.get("types", ())
    return str(types[0]) if len(types) == 1 and route["by"]["type"] == RecordName.kind else ""
