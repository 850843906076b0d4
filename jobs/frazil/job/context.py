"""What every step of a job needs: its session, its clients, its name in the ledger, and how it is stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from frazil.clients.consumer_groups import ConsumerGroups
from frazil.clients.kafka import Kafka
from frazil.lake.iceberg_java import Iceberg


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """What every step of a job needs. All pipelines of the job share it, so all of it is safe to share between threads.

    `run` names the job's run in the ledger, `version` is that of Frazil. `clock` is in seconds since 1970; `wait` sleeps for a
    number of seconds, and ends early if the job is to stop. `new_id` returns a new name that no other file has. `failpoint` marks a
    step, at which a test may interfere (see `frazil.job.failpoints`). `stopping` says whether the job is to stop, and `stop` asks
    for it. `redact` masks, in a text, the secrets that were read.
    """

    spark: SparkSession
    iceberg: Iceberg
    kafka: Kafka
    run: str
    version: str
    clock: Callable[[], float]
    wait: Callable[[float], None]
    new_id: Callable[[], str]
    failpoint: Callable[[str], None] = lambda step: None
    stopping: Callable[[], bool] = lambda: False
    stop: Callable[[], None] = lambda: None
    redact: Callable[[str], str] = lambda text: text
    consumers: ConsumerGroups = field(default_factory=ConsumerGroups)

    def now_ms(self) -> int:
        """Return the time in milliseconds since 1970."""
        return round(self.clock() * 1000)

    def ago_ms(self, seconds: float) -> int:
        """Return the time `seconds` ago, in milliseconds since 1970."""
        return round((self.clock() - seconds) * 1000)
