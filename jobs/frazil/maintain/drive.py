"""Drive: what a maintenance run needs, made from an environment. Kafka and the registry are no part of it."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from frazil.clients.secrets import Secrets
from frazil.declaration.environment import Environment
from frazil.job.failpoints import UPKEEP_STEPS, Failpoints
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.session import end, session
from frazil.maintain.keeper import Keeper, Policy
from frazil.version import VERSION

_SHUFFLE = "spark.sql.shuffle.partitions"


def shuffle_partitions(cores: int) -> int:
    """Into how many tasks expiry and the search for orphans divide what they compare: 4 a core, 16 at least.

    Spark's 200 make most of them empty on tables of a few thousand files, and cost seconds an action.
    """
    return max(16, 4 * cores)


@contextmanager
def keeper(
    environment: Environment,
    secrets: Secrets,
    *,
    jars: Sequence[Path] = (),
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    policy: Policy | None = None,
    dry_run: bool = False,
    failpoints: str = "",
    stopping: threading.Event | None = None,
) -> Iterator[Keeper]:
    """A keeper; its Spark session ends with it. Once `stopping` is set, it ends between two steps."""
    stop = stopping or threading.Event()
    spark = session(environment, secrets.read, name="frazil-maintain", jars=jars, master=master, settings=settings)
    if not spark.sparkContext.getConf().contains(_SHUFFLE):
        spark.conf.set(_SHUFFLE, shuffle_partitions(spark.sparkContext.defaultParallelism))
    jvm: Any = spark._jvm

    def wait(seconds: float) -> None:
        stop.wait(seconds)

    try:
        yield Keeper(
            spark=spark,
            iceberg=Iceberg(spark, environment.catalog.name),
            run=uuid.uuid4().hex,
            version=VERSION,
            clock=time.time,
            wait=wait,
            ticket=lambda: uuid.uuid4().hex,
            policy=policy or Policy(),
            dry_run=dry_run,
            reach=Failpoints(failpoints, lambda: int(jvm.java.lang.ProcessHandle.current().pid()), UPKEEP_STEPS),
            stopping=stop.is_set,
        )
    finally:
        end(spark)
