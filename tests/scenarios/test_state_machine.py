"""Upsert tables and changelogs after any order of changes, kills, twins, upkeep, schema changes and rollbacks."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test
from pyspark.sql import SparkSession

from frazil.declaration import Changelog, Debezium, ErrorMode, Hmac, Keep, Order, Secret, Shape, Upsert
from frazil.declaration.catalogs import LocalCatalog
from frazil.declaration.environment import Environment
from frazil.errors import KeysMoved
from frazil.job.context import JobContext
from frazil.lake.sql.changelog_sql import ChangelogTable
from frazil.local.services import LocalServices
from frazil.recovery.decisions import Accepted
from frazil.write import upsert
from tests.support import trino_server
from tests.support.agreeing_index import AgreeingIndex
from tests.support.debezium_events import ORDERS, PLACEHOLDER, Source, column, optional
from tests.support.life import CHOSEN, LIMITS, Life
from tests.support.shop import Shop
from tests.support.state_replay import ReplayByColumn, StateReplay
from tests.support.trino_server import Trino

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.long]
TIMES = st.integers(0, 30)
COLOURS = ["red", "green", "blue"]
KEYS, WORDS = st.integers(0, 5), st.sampled_from(COLOURS)
OR_NONE = st.one_of(WORDS, st.none())


class KeyedLife(Life):
    """A topic with keys, and records that an in-memory replay applies."""

    REPLAY: ClassVar[type[StateReplay]] = StateReplay

    def __init__(self, shop: Shop) -> None:
        super().__init__(shop)
        mode: Any = shop.pipeline.write
        self.replay = self.REPLAY(shop, ordered_by=mode.order_columns)
        shop.drain()  # makes the table

    @property
    def columns(self) -> str:
        """What other engines read."""
        return f'{self.replay.key_column}, "user"'

    @property
    def write(self) -> Any:
        return self.shop.pipeline.write

    def produce(self, key: int, word: str | None, at: int) -> None:
        # Without an order a key has one partition; the values that a soft delete keeps depend on the partitions, too.
        moves = bool(self.write.order_columns) and not self.replay.is_soft
        self.replay.produce(key, word, at=at, partition=(key + at) % 2 if moves else None)

    def produce_one(self, number: int) -> None:
        self.produce(number % 6, f"of a twin, {number}" if number < 7 else None, at=3 * number)

    @rule(changes=st.lists(st.tuples(KEYS, OR_NONE, TIMES), min_size=1, max_size=9))
    def change(self, changes: list[tuple[int, str | None, int]]) -> None:
        for key, word, at in changes:
            self.produce(key, word, at)

    @rule(key=KEYS)
    def produce_a_bad_record(self, key: int) -> None:
        self.shop.produce([b"bad!!"], partition=key % 2, key=self.replay.key(key))
        self.bad += 1

    @precondition(lambda self: len(self.replay.schema["fields"]) < 6)
    @rule()
    def add_a_field(self) -> None:
        self.replay.add_field()


class StateLife(KeyedLife):
    """An upsert table."""

    def wanted(self) -> list[tuple[Any, str | None]]:
        rows, named = self.replay.rows().items(), self.replay.in_table
        return sorted((named(key), row.word) for key, row in rows if row.deleted_at is None or self.replay.is_soft)

    def check_rows(self) -> None:
        assert sorted((row[self.replay.key_column], row["user"]) for row in self.shop.landed()) == self.wanted()

    def teardown(self) -> None:
        super().teardown()
        self.check_engines(self.columns, self.wanted())
        if not self.replay.records:
            return  # a table without a batch has no account
        self.replay.check()


class PartitionedLife(StateLife):
    """An upsert table whose rows are in the partition of their word, and leave it with each other word."""

    @initialize()
    def fill(self) -> None:
        for key in range(6):
            self.produce(key, COLOURS[key % 3], at=0)
        self.shop.drain()

    @rule(by=st.integers(1, 2))
    def move(self, by: int) -> None:
        for key, row in sorted(self.replay.rows().items()):
            at = COLOURS.index(row.word) if row.word in COLOURS else 0
            self.produce(key, COLOURS[(at + by) % 3], at=0)

    def teardown(self) -> None:
        self.move(1)  # what upkeep and drivers left has to move, too
        super().teardown()


class ByColumnLife(StateLife):
    """An upsert table whose key is a column of the value."""

    REPLAY = ReplayByColumn


class VersionedLife(StateLife):
    """An upsert table that a version orders, and then the time. A record without a value has no version."""

    def produce(self, key: int, word: str | None, at: int) -> None:
        if word is None:
            self.shop.produce([None], partition=key % 2, key=self.replay.key(key))
            self.bad += 1
        else:
            self.replay.produce(key, word, version=at // 10, at=at % 10, partition=(key + at) % 2)


class AgedShop(Shop):
    """A shop whose clock is some days ahead."""

    days = 0

    def job(self, run: str = "", **overrides: Any) -> JobContext:
        return super().job(run, **{"clock": lambda: time.time() + 86_400 * self.days, **overrides})


class ForgetfulLife(StateLife):
    """An upsert table that forgets its deletes in time."""

    SHOP = AgedShop

    @rule()
    def let_time_pass(self) -> None:
        """Land a record of its own then: a rollback never goes behind its batch, to deletes that land once more."""
        shop: Any = self.shop
        shop.drain()
        shop.days += 10
        self.replay.forget_deletes()
        self.produce(0, COLOURS[0], at=0)
        shop.drain()

    def teardown(self) -> None:
        """Forget a delete once more, and land an older record behind it."""
        self.produce(1, None, at=40)
        self.let_time_pass()
        self.produce(1, COLOURS[1], at=0)
        super().teardown()


class DecidedShop(Shop):
    """A shop whose operator accepts that keys changed their partition, each time that its pipeline stops for it."""

    decisions = 0

    def drain(self, *given: Any, **options: Any) -> Any:
        try:
            return super().drain(*given, **options)
        except KeysMoved:
            self.decisions += 1
            self.accept(Accepted.KEYS_MOVED)
            return super().drain(*given, **options)


class MovingLife(StateLife):
    """A table without an order whose keys change their partition, and an operator who says so when the pipeline stops.

    Timestamps grow, because they decide between partitions until all that was written before the decision has landed.
    """

    SHOP = DecidedShop

    def __init__(self, shop: Shop) -> None:
        self.now, self.moved = 0, 0
        super().__init__(shop)

    def produce(self, key: int, word: str | None, at: int) -> None:
        self.now += 1
        self.replay.produce(key, word, at=self.now, partition=(key + self.moved) % 2)

    @rule()
    def move(self) -> None:
        self.moved += 1
        for key in range(0, 6, 2):
            self.produce(key, COLOURS[key % 3], at=0)

    def teardown(self) -> None:
        """Move once more, behind rows that are newer than each decision: the pipeline must stop for it."""
        shop: Any = self.shop
        self.move()
        for _ in range(2):  # the first ones move the odd keys, so a decision is about them, too
            for key in range(6):
                self.produce(key, COLOURS[key % 3], at=0)
            shop.drain()
        before = shop.decisions
        self.move()
        super().teardown()
        assert shop.decisions == before + 1


class ChangelogLife(KeyedLife):
    """A table that has each change, and the view of the state that its changes make."""

    def check_rows(self) -> None:
        self.shop.assert_each_record_once()

    def teardown(self) -> None:
        super().teardown()
        iceberg, name = self.shop.job().iceberg, self.shop.pipeline.table.identifier
        table = iceberg.load(name)
        log = ChangelogTable.of(name, iceberg.schema_json(table), table.properties())
        rows = self.replay.rows().items()
        state = [(f"k{key}", row.word) for key, row in rows if row.deleted_at is None]
        self.check_engines(self.columns, state, lambda engine, name: f"({log.state(engine, name)})")


class CapturedLife(Life):
    """The topic of a database's table with Debezium's events, truncates and values that an event leaves out among them."""

    def __init__(self, shop: Shop) -> None:
        super().__init__(shop)
        self.source, self.columns, self.without_row = Source(shop), list(ORDERS), 0
        shop.drain()  # makes the table

    def produce_one(self, number: int) -> None:
        if number < 8:
            self.save(number % 6, f"of a twin, {number}", None)
        else:
            self.source.delete(number % 6)

    @rule(key=KEYS, word=WORDS, note_of=st.one_of(OR_NONE, st.just(PLACEHOLDER)))
    def save(self, key: int, word: str, note_of: str | None) -> None:
        known = key in self.source.rows
        left_out = note_of == PLACEHOLDER and not known
        self.source.write("u" if known else "c", key, customer=word, note=None if left_out else note_of)

    @rule(key=KEYS, parts=st.sampled_from([(True, True), (True, False), (False, True)]))
    def delete(self, key: int, parts: tuple[bool, bool]) -> None:
        event, tombstone = parts
        self.source.delete(key, event=event, tombstone=tombstone)

    @rule(key=KEYS, to=KEYS)
    def change_a_key(self, key: int, to: int) -> None:
        row = dict(self.source.rows.get(key) or {"customer": "new", "note": None})
        self.source.delete(key)
        self.source.write("c", to, customer=row["customer"], note=row["note"])

    @rule()
    def truncate(self) -> None:
        self.source.produce(None, self.source.event("t", None))
        self.source.rows.clear()

    @rule(key=KEYS)
    def send_a_message(self, key: int) -> None:
        self.source.produce(key, self.source.event("m", None))

    @rule(key=KEYS)
    def leave_out_what_no_row_has(self, key: int) -> None:
        if key not in self.source.rows:
            row = {each["name"]: None for each in self.columns} | {"id": key, "note": PLACEHOLDER}
            self.source.produce(key, self.source.event("u", row))
            self.without_row += 1

    @precondition(lambda self: len(self.columns) < 6)
    @rule()
    def add_a_column(self) -> None:
        self.columns.append(column(f"more_{len(self.columns)}", optional("int")))
        self.source.evolve(self.columns)

    def check_rows(self) -> None:
        found = sorted((row["id"], row["customer"], row["note"]) for row in self.shop.landed())
        assert found == self.wanted()

    def check_dead_letters(self) -> None:
        """Assert it. A change that lacks values is superseded if its batch has a later one of its key, or a truncate."""
        assert {row["reason"] for row in self.shop.dead()} <= {"value_unavailable"}
        assert len(self.shop.dead()) <= self.without_row

    def wanted(self) -> list[Any]:
        return sorted((key, row["customer"], row["note"]) for key, row in self.source.rows.items())

    def teardown(self) -> None:
        super().teardown()
        self.check_engines("id, customer, note", self.wanted())


BY_TIME = "_kafka_timestamp"
SHAPE = Shape(where="`user` <> 'blue'", select="* except (`user`), concat(`user`, '') as `user`")
MASKED = Shape(mask={"version": Hmac(Secret(env="MASK_KEY"))})
TEXT = {"key_format": "text"}
CAPTURED = {"key_format": "avro", "envelope": Debezium(), "partitions": 1, "max_rejected_percent": 100}
LIVES: dict[str, tuple[type[KeyedLife | CapturedLife], dict[str, Any]]] = {
    "state": (StateLife, {"write": Upsert(), **TEXT}),
    "ordered": (StateLife, {"write": Upsert(order_by=Order(BY_TIME)), **TEXT}),
    "ordered_soft": (StateLife, {"write": Upsert(order_by=Order(BY_TIME), on_tombstone="soft_delete"), **TEXT}),
    "soft": (StateLife, {"write": Upsert(on_tombstone="soft_delete"), **TEXT}),
    "by_column": (ByColumnLife, {"write": Upsert(key="order_id"), "key_format": "avro"}),
    "by_version": (VersionedLife, {"write": Upsert(order_by=Order(("version", BY_TIME))), **TEXT}),
    "forgetful": (ForgetfulLife, {"write": Upsert(order_by=Order(BY_TIME, remember_deletes="3 days")), **TEXT}),
    "partitioned": (PartitionedLife, {"write": Upsert(), **TEXT, "table": {"partition_by": ("user",)}}),
    "moving": (MovingLife, {"write": Upsert(), **TEXT}),
    "changelog": (ChangelogLife, {"write": Changelog(), **TEXT}),
    "ordered_changelog": (ChangelogLife, {"write": Changelog(order_by=BY_TIME), **TEXT}),
    "filtered": (StateLife, {"write": Upsert(), "shape": SHAPE, **TEXT}),
    "filtered_by_column": (ByColumnLife, {"write": Upsert(key="order_id"), "key_format": "avro", "shape": SHAPE}),
    "filtered_soft": (
        StateLife,
        {"write": Upsert(order_by=Order(BY_TIME), on_tombstone="soft_delete"), "shape": SHAPE, **TEXT},
    ),
    "filtered_changelog": (ChangelogLife, {"write": Changelog(), "shape": SHAPE, **TEXT}),
    "masked": (StateLife, {"write": Upsert(), "shape": MASKED, **TEXT}),
    "masked_changelog": (ChangelogLife, {"write": Changelog(), "shape": MASKED, **TEXT}),
    "selected_change_data": (
        CapturedLife,
        {"write": Upsert(on_truncate="delete_all"), "shape": Shape(select="note, id, customer"), **CAPTURED},
    ),
    "change_data": (CapturedLife, {"write": Upsert(on_truncate="delete_all"), **CAPTURED}),
}


@pytest.fixture(scope="module")
def trino(tmp_path_factory: pytest.TempPathFactory, lake_environment: Environment) -> Iterator[Trino | None]:
    """A Trino on the lake of the tests, or none if it was not fetched."""
    if not trino_server.is_installed():
        yield None
        return
    assert isinstance(lake_environment.catalog, LocalCatalog)
    with trino_server.trino(tmp_path_factory.mktemp("trino"), lake_environment.catalog) as running:
        yield running


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", LIVES)
@pytest.mark.timeout(3600)
def test_any_order_of_events_ends_in_what_the_topic_says(
    local_world: LocalServices,
    spark: SparkSession,
    lake_environment: Environment,
    trino: Trino | None,
    kind: str,
    version: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(upsert, "IndexResolver", AgreeingIndex)  # keys are found by an index, and by the search too
    made, declared = LIVES[kind]

    def life() -> KeyedLife | CapturedLife:
        begun = made(
            made.SHOP(
                local_world,
                spark,
                lake_environment,
                f"t{uuid.uuid4().hex[:10]}",
                on_error=ErrorMode.DEAD_LETTER,
                limits=LIMITS,
                **{**declared, "table": {"format_version": version, "snapshots": Keep(2), **declared.get("table", {})}},
            )
        )
        begun.trino = trino if version == 2 else None  # Trino 476 fails on deletion vectors
        return begun

    machine: Any = life
    run_state_machine_as_test(machine, settings=CHOSEN)
