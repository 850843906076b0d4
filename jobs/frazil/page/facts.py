"""The facts of a page as values, from catalogs, Kafka and proofs; nothing here writes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from frazil.audit.files.proofs import ProofFolder, Result
from frazil.audit.verify import last_result
from frazil.clients.daemon_threads import DaemonThreads
from frazil.clients.secrets import Secrets
from frazil.dead_letters.show import DeadLetterView
from frazil.declaration import Environment, Pipeline
from frazil.errors import CatalogUnavailable, FrazilError
from frazil.lake.read.stored_tables import Lake, StoredTable
from frazil.page import dead_letter_views
from frazil.page.dead_letter_views import CircuitBreaker, Rejected
from frazil.page.drawing import Station
from frazil.page.engine_queries import Query, engine_queries
from frazil.status.all_pipelines import LONGEST_SECONDS
from frazil.status.looking import Looking, command_in
from frazil.status.pipeline_status import PipelineStatus, State
from frazil.status.shown_values import number, rate, size

COMMITS = 30
"""Snapshots that are listed."""
LISTING_SECONDS = 30.0
"""The longest time of a look at the topics and tables of patterns."""
SHOWN = 3
"""Names that a station of the way lists."""
PARALLEL = 4
"""Pipelines and dead letters that are read at a time."""
Report = Callable[[str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All pipelines. `at` is in seconds since 1970; `notes` say why some of the pipelines may be missing."""

    environment: str
    at: float
    rows: tuple[PipelineStatus, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The size of a table at one snapshot, as its summary counts it."""

    at: float
    rows: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaVersion:
    """A schema of the table: what it changed, the first snapshot with it, and the writer schemas that came with it."""

    id: int
    changes: tuple[str, ...]
    at: datetime | None = None
    writers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The last result of `frazil verify`; `newer` are the snapshots since then, whoever made them, None if that is not known."""

    result: Result
    newer: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """One pipeline in full."""

    status: PipelineStatus
    at: float
    way: tuple[Station, ...] = ()
    aside: Station | None = None
    growth: tuple[Growth, ...] = ()
    schemas: tuple[SchemaVersion, ...] = ()
    rejected: Rejected = field(default_factory=Rejected)
    proof: Proof | None = None
    queries: tuple[Query, ...] = ()
    verify: str = ""
    """The command that proves."""
    problem: str = ""
    """The reason why parts are missing."""


class OneLook(Lake):
    """A lake that loads each table once. Safe to share between threads."""

    def __init__(self, environment: Environment, secrets: Secrets) -> None:
        super().__init__(environment, secrets.read)
        self._kept: dict[str, StoredTable | None] = {}
        self._lock = threading.Lock()

    def table(self, identifier: str) -> StoredTable | None:
        """Return the table as it was at the first question."""
        with self._lock:
            if identifier not in self._kept:
                self._kept[identifier] = super().table(identifier)
            return self._kept[identifier]


class Facts:
    """Reads the facts of an environment's pipelines. `declared` lists these, and reports why some are missing."""

    def __init__(
        self,
        place: Environment,
        env: str,
        secrets: Secrets,
        declared: Callable[[Report], Sequence[Pipeline]],
        proofs: ProofFolder,
    ) -> None:
        self.environment, self.redactor = env, secrets.redactor
        self._place, self._secrets, self._declared, self._proofs = place, secrets, declared, proofs
        self._looking = Looking(place, env, secrets)
        self._pipelines: dict[str, Pipeline] = {}
        self._threads, self._listing = DaemonThreads(PARALLEL, name="facts"), DaemonThreads(1, name="listing")

    def overview(self) -> Overview:
        """Return all pipelines. If they cannot be listed, these are the ones of the last time."""
        at, notes = time.time(), list[str]()
        listing = self._listing.submit(partial(self._list, notes))
        if _is_done(listing, time.monotonic() + LISTING_SECONDS):
            listing.result()
        else:
            notes.append(f"the pipelines are those of an earlier look: no answer within {LISTING_SECONDS:g} s")
        rows = self._looking.all([*self._pipelines.values()])
        return Overview(environment=self.environment, at=at, rows=tuple(rows), notes=tuple(notes))

    def _list(self, notes: list[str]) -> None:
        try:
            listed = self._declared(lambda text, style: notes.append(self._looking.in_words(text)))
            self._pipelines = {one.name: one for one in listed}
        except FrazilError as error:
            notes.append(self._looking.in_words(str(error)))

    def knows(self, name: str) -> bool:
        """Return whether the last overview had a pipeline of this name."""
        return name in self._pipelines

    def details(self, overview: Overview, names: Sequence[str]) -> Iterator[Detail]:
        """Yield pipelines of an overview in full. A registry or a catalog that does not answer is not asked for each."""
        registry, rows, is_silent = self._registry(), {one.pipeline: one for one in overview.rows}, False
        for name in names:
            row = rows[name]
            if row.location is None and (is_silent or row.state is not State.UNKNOWN):
                way, aside = way_of(self._pipelines[name], row)
                verify = command_in(f"frazil verify {name}", self.environment)
                yield Detail(status=row, at=overview.at, way=way, aside=aside, verify=verify)
                continue
            found = self.detail(name, registry)
            is_silent = is_silent or found.status.location is None
            yield found

    def detail(self, name: str, registry: CircuitBreaker | None = None) -> Detail:
        """Return one of the pipelines in full, within `LONGEST_SECONDS`. If parts are missing, the state or a problem says why."""
        at, until = time.time(), time.monotonic() + LONGEST_SECONDS
        pipeline, lake = self._pipelines[name], OneLook(self._place, self._secrets)
        found: dict[str, Any] = {}
        reading = self._threads.submit(partial(self._read, pipeline, lake, registry or self._registry(), found))
        (status,) = self._looking.all([pipeline], lake=lake, commits=COMMITS)
        if _is_done(reading, until):
            reading.result()
        elif status.location is not None:
            problem = f"not all facts were read within {LONGEST_SECONDS:g} s"
            found = {"rejected": Rejected(problem=problem), **found, "problem": problem}
        verify = command_in(f"frazil verify {name}", self.environment)
        made = Detail(status=status, at=at, verify=verify, **found)
        way, aside = way_of(pipeline, status, [one.engine for one in made.queries], found.get("rejected"))
        return replace(made, way=way, aside=aside)

    def letter(self, name: str, place: tuple[int, int]) -> DeadLetterView | None:
        """Return the dead letter of a partition and an offset; None if it does not exist. Raises what reading it raises."""
        pipeline, lake = self._pipelines[name], OneLook(self._place, self._secrets)
        read = partial(dead_letter_views.letter, pipeline, lake, self._registry(), place)
        reading = self._threads.submit(read)
        if not _is_done(reading, time.monotonic() + LONGEST_SECONDS):
            what = f"no answer within {LONGEST_SECONDS:g} s"
            raise CatalogUnavailable(what, where=f"table {pipeline.table.dead_letters}")
        return reading.result()

    def _registry(self) -> CircuitBreaker | None:
        registry = self._looking.registry()
        return None if registry is None else CircuitBreaker(registry)

    def _read(self, pipeline: Pipeline, lake: Lake, registry: CircuitBreaker | None, found: dict[str, Any]) -> None:
        """Add the fields of `Detail` that the table has to `found`, the slow ones last; nothing if it cannot be read."""
        try:
            table = lake.table(pipeline.table.identifier)
            side = lake.table(pipeline.table.dead_letters)
        except FrazilError:
            return
        if table is None:
            return
        found["queries"] = engine_queries(pipeline, self._place, self.environment, table.version)
        found["growth"], found["schemas"] = tuple(growth_of(table)), tuple(schemas_of(table))
        found["proof"] = proof_of(table, last_result(pipeline, table, side, self._proofs))
        counted = (one.entry.counts for one in table.commits(pipeline.name))
        if side is None and any(counts.rejected for counts in counted if counts is not None):
            found["rejected"] = Rejected(problem=f"the dead-letter table {pipeline.table.dead_letters} does not exist")
        else:
            found["rejected"] = dead_letter_views.rejected(pipeline, lake, registry)


def _is_done(reading: Future[Any], until: float) -> bool:
    """Wait until a time of the monotonic clock, and return whether the reading ended. One that did not begin is cancelled."""
    wait([reading], timeout=max(until - time.monotonic(), 0.0))
    return not reading.cancel() and reading.done()


def way_of(
    pipeline: Pipeline, status: PipelineStatus, engines: Sequence[str] = (), rejected: Rejected | None = None
) -> tuple[tuple[Station, ...], Station]:
    """Return the stations of a pipeline's records, and that of the rejected ones."""
    shape, route, lag = pipeline.shape, pipeline.shape.route, status.lag
    read = rate(status.read_per_second) if status.read_per_second else ""
    waiting = "lag not known" if lag is None else f"{number(lag)} records wait" if lag else "all read"
    partitions = len(status.partitions)
    count = f"{number(partitions)} partition{'s' * (partitions != 1)}" if partitions else ""
    stations = [_station("topic", pipeline.topic.name, count, waiting)]
    if route is not None:
        stations.append(_station("route", f"by {route.by.kind}", *_some(route.types), f"others: {route.rest.value}"))
    shaped = (
        f"from {pipeline.envelope.kind}" if pipeline.envelope else "",
        f"where {shape.where}" if shape.where else "",
        f"select {shape.select}" if shape.select else "",
        f"masks {', '.join(shape.masks)}" if shape.masks else "",
    )
    every = "" if any(shaped) else "all records, all columns"
    stations.append(_station("transform", f"decode {pipeline.topic.value.kind}", *shaped, every))
    stations[1] = replace(stations[1], arrives=read)
    sizes = (
        f"{size(status.bytes)} in {number(status.data_files)} files" if status.bytes is not None else status.state.value
    )
    rows = f"{number(status.rows)} rows" if status.rows is not None else ""
    stations.append(replace(_station("table", pipeline.table.identifier, rows, sizes), arrives=pipeline.write.kind))
    stations.append(replace(_station("readers", "any engine", *_some(engines)), arrives="Iceberg"))
    dead = "not known" if rejected is None or rejected.problem else f"{number(rejected.total)} records"
    reasons = [f"{reason}: {number(count)}" for reason, count in (rejected.counts if rejected else {}).items()]
    return tuple(stations), replace(_station("dead", dead, *_some(reasons)), arrives="rejected")


def _station(kind: str, title: str, *lines: str) -> Station:
    """Return a station with those lines that are not empty."""
    return Station(kind=kind, title=title, lines=tuple(" ".join(line.split()) for line in lines if line))


def _some(names: Sequence[str]) -> list[str]:
    """Return the first names, and how many more there are."""
    return [*names[:SHOWN], *([f"and {len(names) - SHOWN} more"] if len(names) > SHOWN else [])]


def growth_of(table: StoredTable) -> Iterator[Growth]:
    """Yield the sizes of a table by its snapshots, oldest first. Compaction of an upsert table changes none of its rows.

    The first one is that whose rows are known: the summary of a compaction does not count those of an upsert table.
    """
    of_keys: int | None = None
    listed = [*reversed([*table.ancestors(table.head)])]
    has_keys = any(one.entry.keys is not None for one in listed)
    for snapshot in listed:
        found = snapshot.summary
        keys = snapshot.entry.keys
        of_keys = keys.rows if keys is not None else of_keys
        records = int(found.get("total-records", 0)) - int(found.get("total-position-deletes", 0))
        if has_keys and of_keys is None and records:
            continue
        yield Growth(
            at=snapshot.committed_at.timestamp(),
            rows=records if of_keys is None else of_keys,
            files=int(found.get("total-data-files", 0)) + int(found.get("total-delete-files", 0)),
            bytes=int(found.get("total-files-size", 0)),
        )


def schemas_of(table: StoredTable) -> Iterator[SchemaVersion]:
    """Yield the schemas of a table, newest first."""
    from pyiceberg.schema import index_by_id, index_name_by_id

    metadata, before = table.iceberg.metadata, dict[int, tuple[str, str]]()
    used = {one.snapshot_id: one.schema_id for one in metadata.snapshots}
    seen, found = set[int](), list[SchemaVersion]()
    for schema in sorted(metadata.schemas, key=lambda one: one.schema_id):
        names, types = index_name_by_id(schema), index_by_id(schema)
        columns = {id_: (name, str(types[id_].field_type).partition("<")[0]) for id_, name in names.items()}
        entries = [one for one in table.snapshots.values() if used.get(one.id) == schema.schema_id]
        writers = [id_ for one in entries for id_ in one.entry.schema_ids if id_ not in seen]
        seen |= {*writers}
        at = entries[0].committed_at if entries else None
        made = tuple(_changes(before, columns))
        found.append(SchemaVersion(id=schema.schema_id, changes=made, at=at, writers=tuple(dict.fromkeys(writers))))
        before = columns
    yield from reversed(found)


def _changes(before: Mapping[int, tuple[str, str]], now: Mapping[int, tuple[str, str]]) -> Iterator[str]:
    """Yield the changes from one schema to the next. The parts of a new column are not listed."""
    new = {name for id_, (name, _) in now.items() if id_ not in before}
    for id_, (name, kind) in now.items():
        parents = (name[:at] for at, character in enumerate(name) if character == ".")
        if id_ not in before:
            if not any(parent in new for parent in parents):
                yield f"+ {name} {kind}"
            continue
        old_name, old_kind = before[id_]
        if old_name != name:
            yield f"{old_name} → {name}"
        if old_kind != kind:
            yield f"{name}: {old_kind} → {kind}"
    gone = {name for id_, (name, _) in before.items() if id_ not in now}
    yield from (f"− {name}" for name in sorted(gone))


def proof_of(table: StoredTable, result: Result | None) -> Proof | None:
    """Return a result with the number of snapshots after it, those of other engines, too."""
    if result is None:
        return None
    after = [one.id for one in table.ancestors(table.head)]
    if result.snapshot not in after:
        return Proof(result=result, newer=None)
    return Proof(result=result, newer=after.index(result.snapshot))
