"""The life of one topic and its table, as Hypothesis invents it: what drivers, upkeep and operators do, in any order.

A subclass adds what the producer does, and says what the table must hold.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, ClassVar
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from frazil.declaration import Limits
from frazil.lake.sql.sql_engine import SqlEngine
from frazil.maintain import compact as merge_deletes
from frazil.maintain.compact import compact
from frazil.maintain.expire import expire
from frazil.maintain.lease import Lease
from frazil.maintain.target import MaintenanceRun
from frazil.recovery.decisions import Accepted
from tests.support import oracle
from tests.support.duckdb_reader import ask
from tests.support.failpoint_steps import STATE_UPKEEP_STEPS
from tests.support.jobs import Crash, crash_at, once
from tests.support.shop import Shop
from tests.support.trino_server import Trino

STEPS = st.sampled_from(
    [
        *("plan.done", "stage.started", "stage.written", "stage.rejected", "stage.done", "decide.written"),
        *("publish.decided", "publish.searched", "publish.filled", "publish.committed", "decide.decided"),
        *("evolve.filled", "evolve.committed", "finish.started", "finish.finished"),
    ]
)
"""Steps of a driver; one that the pipeline does not have is a run without an event."""
UPKEEP_STEPS = st.sampled_from(["compact.rewritten", "compact.committed", *STATE_UPKEEP_STEPS, "expire.decided"])
LIMITS = Limits(first_rows=4, max_rows=4)
CHOSEN = settings(
    max_examples=8,
    stateful_step_count=15,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # to make a failing life shorter takes hours
)


class Life(RuleBasedStateMachine):
    """The life of one topic and its table. `bad` is the number of records that are rejected in every batch.

    At its end DuckDB reads the table, and so does `trino` if there is one.
    """

    SHOP: ClassVar[type[Shop]] = Shop
    trino: Trino | None = None

    def __init__(self, shop: Shop) -> None:
        super().__init__()
        self.shop, self.bad = shop, 0

    def produce_one(self, number: int) -> None:
        """Produce a change; each small number means another one."""
        raise NotImplementedError

    def check_rows(self) -> None:
        """Assert that the table has what it must have."""
        raise NotImplementedError

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
                raise Crash

        try:
            self.shop.drain(failpoint=failpoint)
        except Crash:
            note(f"died at {step}")

    @rule(step=STEPS, number=st.integers(0, 9))
    def land_beside_a_twin(self, step: str, number: int) -> None:
        def twin() -> None:
            self.produce_one(number)
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
            table = self.shop.table
            table.updateProperties().set("comment", uuid.uuid4().hex).commit()

        self.shop.drain(failpoint=once(step, alter))

    @rule()
    def compact(self) -> None:
        self._compact(self.shop.upkeep())

    @rule()
    def expire(self) -> None:
        expire(self.shop.upkeep(), self.shop.target)

    @rule(step=UPKEEP_STEPS)
    def die_in_upkeep(self, step: str) -> None:
        run = self.shop.upkeep(failpoint=crash_at(step))
        try:
            self._compact(run)
            expire(run, self.shop.target)
        except Crash:
            note(f"died at {step}")

    def _compact(self, run: MaintenanceRun) -> None:
        """Compact files, then merge what is left of their deletes."""
        compact(run, self.shop.target, Lease.of({}))
        with patch.object(merge_deletes, "MANY_DELETE_FILES", 2):
            merge_deletes.merge_deletes(run, self.shop.target)

    @rule()
    def roll_back_and_replay(self) -> None:
        self.shop.drain()
        table = self.shop.table
        head = table.currentSnapshot()
        before = head.parentId() if head is not None else None
        was = table.snapshot(before) if before is not None else None
        if was is None or any("frazil.end" not in dict(snapshot.summary()) for snapshot in (head, was)):
            return  # a head without offsets is a rewrite at the end of the run: to roll it back takes no batch away
        table.manageSnapshots().rollbackTo(before).commit()
        self.shop.accept(Accepted.ROLLED_BACK_REPLAY)

    # ── What must be so at the end ──────────────────────────────────────────────────────────────
    def teardown(self) -> None:
        self.shop.drain()
        self.check_rows()
        self.check_dead_letters()
        assert oracle.contents(self.shop.lake, self.shop.pipeline.table.identifier) <= {0, 1}, "equality deletes"
        self.shop.assert_proven()

    def check_dead_letters(self) -> None:
        """Assert that the dead letters are those that they must be."""
        assert len(self.shop.dead()) == self.bad

    def check_engines(
        self, columns: str, rows: list[Any], source: Callable[[SqlEngine, str], str] = lambda _, table: table
    ) -> None:
        """Assert that other engines read `rows` in `columns`. `source` is what they read, in an engine's SQL, of the named table."""
        table = self.shop.table
        at = str(table.operations().current().metadataFileLocation())
        _, found = ask(at, f"SELECT {columns} FROM {source(SqlEngine.DUCKDB, 'lake_table')} q")
        assert sorted(map(tuple, found), key=repr) == sorted(rows, key=repr)
        if self.trino is not None:
            name = ".".join(f'"{part}"' for part in ("lake", *self.shop.pipeline.table.identifier.split(".")))
            found = self.trino.ask(f"SELECT {columns} FROM {source(SqlEngine.TRINO, name)} q")
            assert sorted(found, key=repr) == sorted(rows, key=repr)
