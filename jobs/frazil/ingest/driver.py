"""Driver: what all pipelines of one driver share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from frazil.clients.kafka import Kafka
from frazil.ingest.consumers import Consumers
from frazil.lake.iceberg_java import Iceberg


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """What all pipelines of one driver share.

    `reach` marks steps for tests. `stopping` says that the run is to end, and `stop` asks for it. `redact` masks the secrets
    that were read in a text.
    """

    spark: SparkSession
    iceberg: Iceberg
    kafka: Kafka
    run: str
    version: str
    clock: Callable[[], float]
    wait: Callable[[float], None]
    ticket: Callable[[], str]
    reach: Callable[[str], None] = lambda step: None
    stopping: Callable[[], bool] = lambda: False
    stop: Callable[[], None] = lambda: None
    redact: Callable[[str], str] = lambda text: text
    consumers: Consumers = field(default_factory=Consumers)
