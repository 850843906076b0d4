"""What a ledger and a topic say of a generation's drivers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from frazil.clients.secrets import Secrets
from frazil.declaration import Environment, Kafka, LocalCatalog, Pipeline, Table, Topic, ValueFormat
from frazil.declaration.document import canonical, document
from frazil.declaration.environment import environment_document
from frazil.errors import FrazilError, SecretUnavailable
from frazil.lake import ledger
from frazil.lake.offsets import Offsets
from frazil.lake.read.stored_tables import Snapshot, StoredTable
from frazil.release.upload import upload_document
from frazil.rollout.desired import Desired, Mode
from frazil.rollout.readiness import TableReadiness
from frazil.rollout.steps import Readiness
from tests.support.fake_kafka import FakeKafka, FakePartition, FakeTopic
from tests.support.fake_store import FakeStore
from tests.support.rollout_world import desired

NAMES = ("orders", "users")


@dataclass
class FakeTable:
    """`commits` are newest first: the run, and the offsets that the table holds after it."""

    said: list[tuple[str, Mapping[int, int]]]
    is_start: bool = False
    """Whether a commit ends where it starts."""

    def commits(self, pipeline: str) -> tuple[Snapshot, ...]:
        return tuple(
            Snapshot(
                id=number,
                parent_id=None,
                sequence_number=number,
                committed_at=datetime(2026, 1, 1, tzinfo=UTC),
                operation="append",
                summary={
                    ledger.RUN: run,
                    ledger.END: str(Offsets(pipeline, "id", held)),
                    ledger.PIPELINE: pipeline,
                    **({ledger.START: str(Offsets(pipeline, "id", held))} if self.is_start else {}),
                },
                manifest_list="",
            )
            for number, (run, held) in enumerate(self.said)
        )


@dataclass
class Ground:
    mode: Mode = Mode.FOLLOW
    tables: dict[str, FakeTable] = field(default_factory=dict)
    kafka: FakeKafka = field(default_factory=FakeKafka)
    store: FakeStore = field(default_factory=FakeStore)
    has_secret: bool = True

    def __post_init__(self) -> None:
        for name in NAMES:
            self.kafka.topics[name] = FakeTopic(False, [FakePartition([1] * 10), FakePartition([1] * 5)])

    def wanted(self) -> Desired:
        pipelines = [
            Pipeline(topic=Topic(name, value_format=ValueFormat.TEXT), table=Table(f"shop.{name}")) for name in NAMES
        ]
        place = Environment(
            name="test", kafka=Kafka(bootstrap="k:9092"), catalog=LocalCatalog(path="/x/c.db", warehouse="file:///x")
        )
        keys = [
            upload_document(canonical(data), self.store).key
            for data in (document(pipelines), environment_document(place))
        ]
        return desired(4, document=keys[0], environment=keys[1], mode=self.mode)

    def table(self, identifier: str) -> StoredTable | None:
        return cast(StoredTable | None, self.tables.get(identifier.removeprefix("shop.")))

    def connected(self) -> Any:
        if not self.has_secret:
            raise SecretUnavailable("not for us")
        return self.kafka

    def readiness(self) -> Readiness:
        readiness = TableReadiness(
            self.store, Secrets({}), lake_of=lambda *said: self, kafka_of=lambda *said: self.connected()
        )
        return readiness.of(self.wanted())


ALL = {0: 10, 1: 5}
SOME = {0: 10, 1: 4}
OURS, BEFORE = f"{Ground().wanted().run_prefix}0123", "orders-3-aaaaaaaa-0123"


@pytest.mark.parametrize(
    ("orders", "users", "follow", "drain"),
    [
        ((OURS, SOME), (OURS, SOME), Readiness.COMMITTED, Readiness.COMMITTED),
        ((OURS, SOME), (BEFORE, ALL), Readiness.COMMITTED, Readiness.COMMITTED),
        ((OURS, SOME), (BEFORE, SOME), Readiness.NOTHING_YET, Readiness.COMMITTED),
        ((OURS, SOME), None, Readiness.NOTHING_YET, Readiness.COMMITTED),
        ((BEFORE, ALL), (BEFORE, ALL), Readiness.CAUGHT_UP, Readiness.CAUGHT_UP),
        ((BEFORE, ALL), (BEFORE, SOME), Readiness.NOTHING_YET, Readiness.NOTHING_YET),
        ((BEFORE, {0: 10}), (BEFORE, ALL), Readiness.NOTHING_YET, Readiness.NOTHING_YET),  # a new partition has records
        (None, None, Readiness.NOTHING_YET, Readiness.NOTHING_YET),
    ],
)
def test_what_tables_and_topics_say(orders: Any, users: Any, follow: Readiness, drain: Readiness) -> None:
    tables = {name: FakeTable([said]) for name, said in zip(NAMES, (orders, users), strict=True) if said}
    modes = (Mode.FOLLOW, follow), (Mode.DRAIN, drain)
    for mode, readiness in modes:
        ground = Ground(mode)
        prefix = ground.wanted().run_prefix
        ground.tables = {
            name: FakeTable([(run.replace(OURS, f"{prefix}1"), held) for run, held in table.said])
            for name, table in tables.items()
        }
        assert ground.readiness() is readiness


def test_a_commit_of_ours_counts_also_when_another_was_made_after_it() -> None:
    """An operator's decision, say."""
    ground = Ground()
    run = f"{ground.wanted().run_prefix}1"
    ground.tables = {name: FakeTable([("by-hand", SOME), (run, SOME)]) for name in NAMES}
    assert ground.readiness() is Readiness.COMMITTED


def test_to_have_made_the_table_is_no_proof() -> None:
    """Its first snapshot says where the pipeline starts, before any record was read."""
    ground = Ground()
    run = f"{ground.wanted().run_prefix}1"
    ground.tables = {name: FakeTable([(run, {0: 0, 1: 0})], is_start=True) for name in NAMES}
    assert ground.readiness() is Readiness.NOTHING_YET


@pytest.mark.parametrize("lacks", ["kafka", "its secret"])
def test_without_kafka_nothing_speaks_against_a_generation(lacks: str) -> None:
    ground = Ground()
    ground.kafka.down = lacks == "kafka"
    ground.has_secret = lacks == "kafka"
    run = f"{ground.wanted().run_prefix}1"
    for held in (ALL, SOME):
        ground.tables = {name: FakeTable([(BEFORE, held)]) for name in NAMES}
        assert ground.readiness() is Readiness.UNKNOWN
    ground.tables["orders"] = FakeTable([(run, SOME)])
    assert ground.readiness() is Readiness.PARTLY
    ground.tables["users"] = FakeTable([(run, SOME)])
    assert ground.readiness() is Readiness.COMMITTED


def test_an_empty_topic_needs_no_table() -> None:
    ground = Ground()
    ground.kafka.topics["users"] = FakeTopic(False, [FakePartition([]), FakePartition([])])
    run = f"{ground.wanted().run_prefix}1"
    ground.tables = {"orders": FakeTable([(run, SOME)])}
    assert ground.readiness() is Readiness.COMMITTED
    ground.tables = {"orders": FakeTable([(BEFORE, ALL)])}
    assert ground.readiness() is Readiness.CAUGHT_UP


def test_documents_that_are_not_there_are_an_error() -> None:
    readiness = TableReadiness(FakeStore(), Secrets({}))
    with pytest.raises(FrazilError, match="does not exist"):
        readiness.of(desired())


def test_records_that_retention_took_unread_are_waited_for_if_the_table_has_a_ledger() -> None:
    ground = Ground()
    emptied = FakePartition([1] * 5, earliest=5)
    ground.kafka.topics["users"] = FakeTopic(False, [FakePartition([1] * 10), emptied])
    ground.tables = {"orders": FakeTable([(BEFORE, ALL)]), "users": FakeTable([(BEFORE, {0: 10})])}
    assert ground.readiness() is Readiness.NOTHING_YET
    ground.kafka.topics["users"] = FakeTopic(False, [emptied])
    del ground.tables["users"]
    assert ground.readiness() is Readiness.CAUGHT_UP
