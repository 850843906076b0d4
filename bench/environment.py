"""The common services of all contenders: one broker, one registry, one lake. Each contender has a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from confluent_kafka.admin import AdminClient
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError

from bench import contents
from bench.contender import ANSWER
from bench.fill import ROOT, fill, make
from bench.shapes import SHAPES
from bench.topics import Job, NotWhatWasProducedError, Topic
from frazil.clients.secrets import Secrets
from frazil.lake.catalogs import pyiceberg_properties
from frazil.local.process import noted
from frazil.local.services import LocalServices, world

OUT = Path(".frazil") / "bench"  # under the project, where `make bench` runs
NAMESPACE = "bench"
_BEGAN = time.monotonic()


@dataclass(slots=True)
class Contender:
    """A running contender. It says when its session has started, which the first landing waits for."""

    job: Job
    process: subprocess.Popen[str]
    is_ready: bool = False

    def land(self, way: str, topic: Topic, table: str) -> dict[str, Any]:
        """Let it land a topic into a new table. Return the cost."""
        self.await_ready()
        assert self.process.stdin is not None
        asked = {"way": way, "topic": json.loads(topic.to_json()), "table": table}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return self.hear()

    def await_ready(self) -> None:
        """Wait until its session has started."""
        if not self.is_ready:
            self.hear()
            self.is_ready = True

    def end(self) -> None:
        """Let it end; the block of `served` waits for that."""
        self.await_ready()
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None  # `communicate` would flush it

    def hear(self) -> dict[str, Any]:
        """Return its next answer. Other lines of its standard output are ignored."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(ANSWER):
                answer: dict[str, Any] = json.loads(line.removeprefix(ANSWER))
                return answer
        raise RuntimeError(f"{self.job.contender} ended:\n{tail(self.job)}")


@dataclass(frozen=True, slots=True)
class BenchEnvironment:
    """The running services, and the options of this run."""

    world: LocalServices
    seed: int
    heap: str
    cores: int
    out: Path = OUT
    format_version: int = 2

    @property
    def broker_pid(self) -> int:
        """Return the broker's process."""
        return next(process.pid for process in noted(self.world.home) if process.name == "kafka")

    def topic(self, shape: str, name: str, rows: int, *, partitions: int = 4, is_framed: bool = True) -> Topic:
        """Return a filled topic."""
        topic = make(self.world, SHAPES[shape], name, rows, partitions=partitions, is_framed=is_framed)
        seconds = fill(self.world.bootstrap, [topic], seed=self.seed)
        tell(f"  filled {name}: {rows:,} records in {seconds:.1f} s, {rows / seconds:,.0f} a second")
        return topic

    def drop_topics(self, *topics: Topic) -> None:
        """Delete topics; the broker frees their disk a minute later."""
        admin = AdminClient({"bootstrap.servers": self.world.bootstrap, "log_level": 3})
        for deleted in admin.delete_topics([topic.name for topic in topics]).values():
            deleted.result()

    def job(self, contender: str, label: str, timed: Topic, **more: Any) -> Job:
        """Return a job with a table and a folder of its own."""
        folder = self.out / "runs" / label
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return Job(
            **{
                "contender": contender,
                "environment_file": str(self.world.environment_file),
                "broker_pid": self.broker_pid,
                "timed": timed,
                "table": f"{NAMESPACE}.{label}",
                "folder": str(folder),
                "heap": self.heap,
                "cores": self.cores,
                "format_version": self.format_version,
                **more,
            }
        )

    @contextmanager
    def process(self, job: Job) -> Iterator[subprocess.Popen[str]]:
        """Start the contender's process with its job. Its children end with it."""
        log = Path(job.folder) / "log"
        with log.open("w") as errors:
            child = subprocess.Popen(
                [sys.executable, "-m", "bench.contender", job.to_json()],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        try:
            yield child
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()

    @contextmanager
    def served(self, job: Job) -> Iterator[Contender]:
        """Run a contender that lands topics on request until the block ends. Its session may not have started yet."""
        with self.process(job) as child:
            yield Contender(job, child)
            child.communicate(timeout=60)

    def run(self, job: Job, *, timeout: float = 3600) -> dict[str, Any]:
        """Run a job to its end and return its answer."""
        with self.process(job) as child:
            child.communicate(timeout=timeout)
            if child.returncode:
                raise RuntimeError(f"{job.contender} failed:\n{tail(job)}")
        return self.answer(job)

    def answer(self, job: Job) -> dict[str, Any]:
        """Return the answer of a contender that has ended."""
        file = Path(job.folder) / "answer.json"
        if not file.exists():
            raise RuntimeError(f"{job.contender} gave no answer:\n{tail(job)}")
        answer: dict[str, Any] = json.loads(file.read_text())
        return answer

    # ── The lake, without Spark ─────────────────────────────────────────────────────────────────
    def catalog(self) -> Catalog:
        """Load the catalog with PyIceberg."""
        environment = self.world.environment
        return load_catalog(environment.catalog.name, **pyiceberg_properties(environment, Secrets({}).read))

    def check(self, table: str, topic: Topic, *, state: bool = False) -> None:
        """Check that every record is there once, or the last change of every live key of a `state` of changes.

        PyIceberg lists the files, and DuckDB counts their rows.
        """
        loaded = self.catalog().load_table(table)
        files = [urlparse(task.file.file_path).path for task in loaded.scan().plan_files()]
        found = contents.found(files, topic, loaded.schema().column_names)
        wanted = contents.wanted(topic, seed=self.seed, state=state)
        if found != wanted:
            says = "rows, sum of ids, distinct records" + ", sums of offsets and totals" * bool(topic.key_schema_id)
            raise NotWhatWasProducedError(f"{table}: {says} are {found}, not {wanted}")

    def drop(self, *tables: str) -> None:
        """Drop tables and remove their files, if they exist."""
        catalog = self.catalog()
        for table in [t for name in tables for t in (name, f"{name}__dead_letters")]:
            try:
                location = catalog.load_table(table).location()
            except NoSuchTableError:
                continue
            catalog.drop_table(table)
            shutil.rmtree(urlparse(location).path)


@contextmanager
def ground(*, seed: int, heap: str, cores: int, out: Path = OUT, format_version: int = 2) -> Iterator[BenchEnvironment]:
    """Run the services inside the block. Figures and logs are written to `out`."""
    out.mkdir(parents=True, exist_ok=True)
    with world() as running:
        yield BenchEnvironment(running, seed, heap, cores, out.resolve(), format_version)


def tail(job: Job) -> str:
    """Return the end of a contender's log."""
    return (Path(job.folder) / "log").read_text()[-4000:]


def tell(words: str) -> None:
    """Print a line at once, behind the minutes and seconds since the start."""
    minutes, seconds = divmod(int(time.monotonic() - _BEGAN), 60)
    print(f"{minutes:02}:{seconds:02} {words}", flush=True)
