"""Tables of current state after any order of upserts, deletes, kills, twins, upkeep, schema changes and rollbacks."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from pyspark.sql import SparkSession

from frazil.audit.verify import verify
from frazil.clients.secrets import Secrets
from frazil.declaration import Deletes, ErrorMode, KeyFormat, Limits, Upsert
from frazil.declaration.environment import Environment
from frazil.lake.read.stored_tables import Lake
from frazil.local.duckdb_query import ask
from frazil.local.services import LocalServices
from frazil.maintain import merge_deletes
from frazil.maintain.compact import compact
from frazil.maintain.expire import expire
from frazil.maintain.lease import Lease
from frazil.maintain.target import MaintenanceRun, Policy, Target
from frazil.recovery.apply import accept
from frazil.recovery.decisions import Accepted
from tests.support.jobs import once
from tests.support.shop import ORDER, Shop, avro, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.long]
KEYS, WORDS = st.integers(0, 5), st.sampled_from(["red", "green", "blue"])
STEPS = st.sampled_from(
    [
        *("plan.done", "stage.started", "stage.written", "stage.rejected", "stage.done", "decide.written"),
        *("publish.decided", "publish.searched", "publish.filled", "publish.committed", "decide.decided"),
    ]
)
LIMITS = Limits(first_rows=4, max_rows=4)


class Died(BaseException):
    """A driver that does nothing more, as if it had been killed; no code catches it."""


class Life(RuleBasedStateMachine):
    """The life of one topic and its table; `now` is what an in-memory replay of the topic says."""

    def __init__(self, shop: Shop) -> None:
        super().__init__()
        self.shop, self.fields, self.now, self.bad = shop, list[Any](ORDER["fields"]), dict[int, str](), 0
        self.schema_id = shop.register()
        shop.drain()  # makes the table

    # ── The producer ────────────────────────────────────────────────────────────────────────────
    @rule(changes=st.lists(st.tuples(KEYS, st.one_of(WORDS, st.none())), min_size=1, max_size=9))
    def change(self, changes: list[tuple[int, str | None]]) -> None:
        for key, word in changes:
            self.produce(key, word)

    def produce(self, key: int, word: str | None) -> None:
        more = {field["name"]: 7 for field in self.fields[3:]}
        value = (
            avro({**ORDER, "fields": self.fields}, {"order_id": key, "user": word, "amount": None, **more})
            if word
            else None
        )
        body = None if value is None else frame(self.schema_id, value)
        self.shop.produce([body], partition=key % 2, key=b"k%d" % key)
        self.now.pop(key, None)
        if word:
            self.now[key] = word

    @rule(key=KEYS)
    def produce_a_bad_record(self, key: int) -> None:
        self.shop.produce([b"bad!!"], partition=key % 2, key=b"k%d" % key)
        self.bad += 1

    @precondition(lambda self: len(self.fields) < 6)
    @rule()
    def add_a_field(self) -> None:
        self.fields.append({"name": f"more_{len(self.fields)}", "type": ["null", "int"], "default": None})
        self.schema_id = self.shop.register({**ORDER, "fields": self.fields})

    @rule(deletes=st.sampled_from(Deletes))
    def declare(self, deletes: Deletes) -> None:
        self.shop.pipeline = replace(self.shop.pipeline, write=Upsert(deletes=deletes))

    # ── Drivers ─────────────────────────────────────────────────────────────────────────────────
    @rule()
    def land(self) -> None:
        self.shop.drain()
        self.check_rows()

    @rule(step=STEPS, after=st.integers(0, 2))
    def die(self, step: str, after: int) -> None:
        seen = 0

        def failpoint(reached: str) -> None:
            nonlocal seen
            seen += reached == step
            if seen > after:
                raise Died

        try:
            self.shop.drain(failpoint=failpoint)
        except Died:
            note(f"died at {step}")

    @rule(step=STEPS, key=KEYS, word=st.one_of(WORDS, st.none()))
    def land_beside_a_twin(self, step: str, key: int, word: str | None) -> None:
        def twin() -> None:
            self.produce(key, word)
            self.shop.drain()

        self.shop.drain(failpoint=once(step, twin))

    # ── Upkeep and operators ────────────────────────────────────────────────────────────────────
    @rule(step=STEPS)
    def land_beside_compaction(self, step: str) -> None:
        self.shop.drain(failpoint=once(step, self.compact))

    @rule(step=STEPS)
    def land_beside_expiry(self, step: str) -> None:
        self.shop.drain(failpoint=once(step, self.expire))

    @rule(step=STEPS)
    def land_beside_another_commit(self, step: str) -> None:
        def alter() -> None:
            table = self.shop.job().iceberg.load(self.shop.pipeline.table.identifier)
            table.updateProperties().set("comment", uuid.uuid4().hex).commit()

        self.shop.drain(failpoint=once(step, alter))

    @rule()
    def compact(self) -> None:
        """Compact files, then merge what is left of their deletes."""
        target = Target(self.shop.pipeline, is_dead_letter_table=False)
        compact(self.upkeep(), target, Lease.of({}))
        with patch.object(merge_deletes, "MANY_DELETE_FILES", 2):
            merge_deletes.merge_deletes(self.upkeep(), target)

    @rule()
    def expire(self) -> None:
        expire(self.upkeep(), Target(self.shop.pipeline, is_dead_letter_table=False))

    @rule()
    def roll_back_and_replay(self) -> None:
        self.shop.drain()
        table = self.shop.job().iceberg.load(self.shop.pipeline.table.identifier)
        before = table.currentSnapshot().parentId() if table.currentSnapshot() is not None else None
        was = table.snapshot(before) if before is not None else None
        if was is None or "frazil.end" not in dict(was.summary()):
            return
        table.manageSnapshots().rollbackTo(before).commit()
        accept(self.shop.pipeline, Accepted.ROLLED_BACK_REPLAY, "as the test says", self.shop.job())

    def upkeep(self) -> MaintenanceRun:
        return MaintenanceRun(self.shop.job(), Policy(grace_seconds=0))

    # ── What must be so ─────────────────────────────────────────────────────────────────────────
    def check_rows(self) -> None:
        assert sorted((row["order_id"], row["user"]) for row in self.shop.landed()) == sorted(self.now.items())

    def teardown(self) -> None:
        self.shop.drain()
        self.check_rows()
        assert len(self.shop.dead()) == self.bad
        identifier = self.shop.pipeline.table.identifier
        metadata = self.shop.job().iceberg.load(identifier).operations().current().metadataFileLocation()
        _, rows = ask(str(metadata), 'SELECT order_id, "user" FROM lake_table ORDER BY order_id')
        assert [tuple(row) for row in rows] == sorted(self.now.items())
        for deep in (False, True):
            proof = verify(self.shop.pipeline, Lake(self.shop.lake, Secrets({}).read), deep=deep)
            assert proof.outcome == "proven", proof.findings


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.timeout(1800)
def test_any_order_of_events_ends_in_the_state_of_the_topic(
    local_world: LocalServices, spark: SparkSession, lake_environment: Environment, version: int
) -> None:
    def life() -> Life:
        shop = Shop(
            local_world,
            spark,
            lake_environment,
            f"t{uuid.uuid4().hex[:10]}",
            write=Upsert(),
            key_format=KeyFormat.TEXT,
            on_error=ErrorMode.LOG,
            limits=LIMITS,
            table={"format_version": version, "keep_snapshots": 2},
        )
        return Life(shop)

    chosen = settings(
        max_examples=8,
        stateful_step_count=15,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],  # to make a failing life shorter takes hours
    )
    made: Any = life
    run_state_machine_as_test(made, settings=chosen)
