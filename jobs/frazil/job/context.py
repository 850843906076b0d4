"""The context of every step of a job: its session, its clients, its name in the ledger, and its stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from frazil.clients.kafka import Kafka
from frazil.declaration.secret import Secret
from frazil.job.offset_looks import OffsetLooks
from frazil.job.shared_reads import SharedReads
from frazil.job.turns import Turns
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.prepared_plan import SmallBatches

Leaders = Mapping[int, int | None]
"""The leader epoch of each partition."""


@dataclass(slots=True)
class _Group:
    options: Mapping[str, str]
    topic_id: str
    leaders: dict[int, int | None]
    number: int


class ConsumerGroups:
    """The consumer groups of one driver's pipelines.

    An executor keeps a consumer for each group and partition, and refuses, as long as it runs, to read the partition in the same
    group with other options. Options change while a driver runs: fetches become smaller if there are more partitions to read,
    and secrets are replaced.

    A kept consumer also holds records that it fetched ahead. If a partition has a new leader, its log may have been truncated
    after what was read, and these records may be in no log any more: so a new leader has consumers of its own. So has a topic
    that was deleted and created again, whose leaders count from 0 as those of the deleted one did.
    """

    def __init__(self) -> None:
        self._known: dict[str, list[_Group]] = {}
        self._numbers: dict[str, int] = {}

    def group(
        self, pipeline: str, options: Mapping[str, str], topic_id: str = "", leaders: Leaders | None = None
    ) -> str:
        """Return the group of a pipeline: `frazil-PIPELINE`, for the second options, topic or leaders with `.2`, and so on.

        Partitions that `leaders` does not name have the leaders that they had.
        """
        known = self._known.setdefault(pipeline, [])
        leaders = dict(leaders or {})
        group = next((g for g in known if g.options == options), None)
        if group is None:
            group = _Group(dict(options), topic_id, leaders, self._next(pipeline))
            known.append(group)
        elif group.topic_id != topic_id:
            group.topic_id, group.leaders, group.number = topic_id, {}, self._next(pipeline)
        elif any(group.leaders.get(p, epoch) != epoch for p, epoch in leaders.items()):
            group.number = self._next(pipeline)
        group.leaders |= leaders
        return f"frazil-{pipeline}" if group.number == 1 else f"frazil-{pipeline}.{group.number}"

    def _next(self, pipeline: str) -> int:
        self._numbers[pipeline] = self._numbers.get(pipeline, 0) + 1
        return self._numbers[pipeline]


def _no_secret(secret: Secret) -> str:
    raise NotImplementedError("the job reads no secrets")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """The context of every step of a job. All pipelines of the job share it, so all of it is safe to share between threads.

    `run` names the job's run in the ledger, `version` is that of Frazil. `clock` is in seconds since 1970; `wait` sleeps for a
    number of seconds, and ends early if the job is to stop. `new_id` returns a new name that no other file has. `failpoint` marks a
    step, at which a test may interfere (see `frazil.job.failpoints`). `stopping` says whether the job is to stop, and `stop` asks
    for it. `redact` masks, in a text, the secrets that were read; `secret` reads one.
    `looks` are those of a run that follows its topics.
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
    secret: Callable[[Secret], str] = _no_secret
    consumers: ConsumerGroups = field(default_factory=ConsumerGroups)
    reads: SharedReads = field(default_factory=SharedReads)
    turns: Turns = field(default_factory=Turns)
    small_batches: SmallBatches = field(default_factory=SmallBatches)
    looks: OffsetLooks | None = None

    def now_ms(self) -> int:
        """Return the time in milliseconds since 1970."""
        return round(self.clock() * 1000)

    def ago_ms(self, seconds: float) -> int:
        """Return the time `seconds` ago, in milliseconds since 1970."""
        return round((self.clock() - seconds) * 1000)
