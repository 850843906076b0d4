"""The requests that a commit makes to S3 and to Glue, counted at the local AWS through a proxy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from bench.contenders.aging import state_of
from bench.contenders.requests import CASES
from bench.environment import BenchEnvironment, tell
from bench.fill import make
from bench.request_figures import SKIPPED, billed_of_a_commit
from bench.shapes import SHAPES
from bench.topics import NotWhatWasProducedError, Topic
from frazil.clients.secrets import Secrets
from frazil.declaration.environment import Environment
from frazil.lake.catalogs import pyiceberg_properties
from tests.standin.aws.launch import glue_environment, up

BATCH_ROWS = 1_000
DELAY_MS = 200
"""Much more than a request takes here, so that other work of the machine does not count."""
DELAYED = 8


def count_requests(here: BenchEnvironment, commits: int) -> Iterator[dict[str, Any]]:
    """Land batches in each case, one driver after another; yield its figures. `commits` of each count, after some that do not."""
    tell("requests of commits")
    up(here.world)
    for number, case in enumerate(CASES):
        topic = make(here.world, SHAPES[case.shape], f"requests_{case.name}", BATCH_ROWS, partitions=1)
        topic = replace(topic, keys=case.keys)
        wants = {"case": number, "commits": SKIPPED + commits, "delayed": DELAYED, "delay_ms": DELAY_MS}
        file = str(here.world.environment_file.with_name("glue.json"))
        job = here.job("requests", f"requests_{case.name}", topic, environment_file=file, wants=wants)
        counted = here.run(job)
        _check(_loaded(glue_environment(here.world), job.table), topic, counted["sent"])
        tell(f"  {case.says}: {billed_of_a_commit(counted)}")
        here.drop_topics(topic)
        yield counted


def _loaded(environment: Environment, table: str) -> Table:
    properties = pyiceberg_properties(environment, Secrets({}).read)
    return load_catalog(environment.catalog.name, **properties).load_table(table)


def _check(table: Table, topic: Topic, sent: int) -> None:
    """Check rows and the sum of their ids: each record of an append, the last one of each key that lives of an upsert."""
    rows = table.scan().to_arrow()
    wanted = state_of(topic, sent) if topic.keys else (sent, sent * (sent - 1) // 2)
    found = (rows.num_rows, int(pc.sum(rows["id"]).as_py()))
    if found != wanted:
        raise NotWhatWasProducedError(f"{topic.name}: rows and sum of ids are {found}, not {wanted}")
