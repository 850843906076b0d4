"""The demo's middle: topics fill while Spark starts, and what they have is landed, one schema version after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from frazil.cli.console import number, say
from frazil.cli.local_spark import local_job
from frazil.cli.pipelines.run import Progress
from frazil.clients.secrets import Secrets
from frazil.declaration import Environment, Pipeline, TopicPattern

if TYPE_CHECKING:
    from frazil.cli.demo.changes import Captured
    from frazil.cli.demo.producer import Filling
    from frazil.job.matched_topics import MatchedTopics

POISON_SHARE = 0.001
SEED = 2013
PARTITIONS = 3


def heading(console: Console, place: str, what: str, aside: str = "") -> None:
    """Print the heading of a chapter."""
    console.print()
    console.print(f"[bold]{place}  {what}[/bold]" + (f"  [dim]{aside}[/dim]" if aside else ""))


@dataclass(slots=True, kw_only=True)
class Landed:
    """One pipeline of the demo: what the producer sent, and what came of it."""

    pipeline: Pipeline
    produced: int = 0
    spoilt: dict[str, int] = field(default_factory=dict)
    """Records spoilt on purpose, by the reason for which they are to be rejected."""
    rows: int = 0
    dead: dict[str, int] = field(default_factory=dict)
    """Dead letters by reason, as the table has them."""

    def document(self) -> dict[str, Any]:
        """Return the same as JSON."""
        return {
            "pipeline": self.pipeline.name,
            "produced": self.produced,
            "spoilt": self.spoilt,
            "landed": self.rows,
            "dead_lettered": self.dead,
        }


def fill_and_land(
    declared: Sequence[Pipeline],
    pattern: TopicPattern,
    environment: Environment,
    registry_url: str,
    secrets: Secrets,
    console: Console,
    *,
    memory: str,
    log: Path,
    begin_capture: Callable[[], Captured] | None,
) -> tuple[list[Landed], Captured | None]:
    """Fill each pipeline's topic and land it, version by version of its schema; raises what ended a pipeline.

    The topics of the pattern are found by the run.
    Then land the changes of the database that `begin_capture` starts, if it is given. It starts while the topics fill.
    """
    from frazil.cli.demo.producer import Filling
    from frazil.cli.demo.topics import SOURCES

    at = environment.kafka.bootstrap, registry_url
    pipelines = [*declared, *(pattern.pipeline_of(topic) for topic in SOURCES if pattern.matches(topic))]
    sources = [SOURCES[pipeline.topic.name]() for pipeline in pipelines]
    fillings = [Filling(source, *at, share=POISON_SHARE, seed=SEED) for source in sources]
    heading(console, "2", "Topics fill, and one record in a thousand is spoilt on purpose", "Spark starts meanwhile")
    for filling in fillings:
        filling.create(partitions=PARTITIONS)
    with ThreadPoolExecutor(2) as meanwhile:
        first = meanwhile.submit(_fill, fillings, console)
        capture = meanwhile.submit(begin_capture) if begin_capture is not None else None
        with local_job(environment, secrets, master="local[*]", memory=memory, log=log) as job:
            from frazil.clients.registry.client import Registry
            from frazil.ingest.runner import drain
            from frazil.job.matched_topics import MatchedTopics
            from frazil.lake.read.stored_tables import Lake

            first.result()
            registry = Registry.of(environment.registry, secrets) if environment.registry else None

            topics = MatchedTopics([pattern], declared, Lake(environment, secrets.read), job.kafka.names)

            def land(landed: Sequence[Pipeline], topics: MatchedTopics | None = None, *, probe: bool = False) -> None:
                progress = Progress(tuple(pipeline.name for pipeline in landed))
                with _watched(progress, console):
                    outcomes = drain(landed, job, registry, progress, topics=topics, probe=probe)
                for outcome in outcomes.values():
                    if outcome.error:
                        raise outcome.error
                for line in progress.notes:
                    say(line, "dim", to=console)

            for turn in range(max(len(filling.source.versions) for filling in fillings)):
                if turn:
                    heading(console, "3", "Half-way, the schema changes", "without a change of the declaration")
                    _fill(fillings, console)
                land(declared, topics, probe=turn == 0)
            if capture is not None:
                heading(console, "4", "A database's changes become an upsert table", "by Debezium")
                capture.result().land(console, environment, secrets, lambda pipeline: land([pipeline]))
    landed = [
        Landed(pipeline=pipeline, produced=filling.sent, spoilt=dict(filling.spoilt))
        for pipeline, filling in zip(pipelines, fillings, strict=True)
    ]
    return landed, capture.result() if capture is not None else None


def _fill(fillings: Sequence[Filling], console: Console) -> None:
    """Send each topic the rows of its next version, if it has one."""
    for filling in (filling for filling in fillings if filling.is_unfinished):
        began, before = time.monotonic(), filling.sent
        version = filling.next_version()
        seconds = time.monotonic() - began
        change = f"; new in this version of the schema: {version.what}" if version.what else ""
        sent = f"{number(filling.sent - before)} records sent in {seconds:.1f} s"
        say(f"{filling.source.topic}: {sent}{change}", to=console)


@contextmanager
def _watched(progress: Progress, console: Console) -> Iterator[None]:
    if console.is_terminal:
        with progress.live(console):
            yield
    else:
        yield
        console.print(progress)
