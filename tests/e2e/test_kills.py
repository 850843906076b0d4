"""`kill -9` at each step of a batch, of driver and JVM, then another driver goes on: nothing lost, nothing doubled."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from frazil.declaration import Limits, Spark, Upsert
from frazil.exit_codes import Exit
from frazil.ingest.upkeep import Upkeep
from frazil.lake.rewrite import MANY_DELETE_FILES
from frazil.recovery.apply import accept
from frazil.recovery.decisions import Accepted
from tests.scenarios.test_upserts import State, stored
from tests.support.failpoint_steps import STATE_UPKEEP_STEPS, STEPS
from tests.support.jobs import Crash, crash_at
from tests.support.shop import ORDER, Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
MORE = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
OF_A_NEW_TABLE = ("begin.resolved",)
KILLED = ("publish.filled",)
"""Where every run of the tests kills a process of its own; the others are long, as each starts a JVM."""
DIED = ("decide.decided",)
"""Where each run of the short tests ends a driver. The other steps are long, and `KILLED` has one of them."""


def prepared(shop: Shop, step: str) -> None:
    """A topic whose next batch passes every step: a new column, good records, bad ones."""
    first = shop.register()
    shop.produce(shop.orders(20, first))
    if step not in OF_A_NEW_TABLE:
        shop.drain()
    second = shop.register(MORE)
    shop.produce([*shop.orders(20, second, first=20, schema=MORE), b"bad!!", b"worse", None])


@pytest.mark.parametrize("step", [s if s in DIED else pytest.param(s, marks=pytest.mark.long) for s in STEPS])
def test_a_driver_that_died_at_a_step_loses_and_doubles_nothing(shop: Shop, step: str) -> None:
    prepared(shop, step)
    with pytest.raises(Crash):
        shop.drain(failpoint=crash_at(step))
    shop.drain()
    shop.assert_each_record_once()
    assert sorted(r["order_id"] for r in shop.landed()) == list(range(40))


@pytest.mark.parametrize("step", [s if s in KILLED else pytest.param(s, marks=pytest.mark.long) for s in STEPS])
def test_a_driver_killed_at_a_step_loses_and_doubles_nothing(shop: Shop, step: str, tmp_path: Path) -> None:
    prepared(shop, step)
    killed = shop.process(tmp_path, failpoints=f"{step}=kill")
    _, log = killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL, log
    shop.drain()
    shop.assert_each_record_once()
    assert sorted(r["order_id"] for r in shop.landed()) == list(range(40))


@pytest.mark.parametrize(
    "step",
    [pytest.param(step, marks=pytest.mark.long) for step in ("stage.started", "publish.filled", "decide.decided")],
)
def test_a_jvm_killed_at_a_step_ends_the_driver_with_an_error_and_loses_nothing(
    shop: Shop, step: str, tmp_path: Path
) -> None:
    prepared(shop, step)
    ended = shop.process(tmp_path, failpoints=f"{step}=kill-jvm")
    _, log = ended.communicate(timeout=120)
    assert ended.returncode == Exit.FAILED, log
    assert '"error": "JvmEnded"' in log, log
    assert "Traceback" not in log, log
    shop.drain()
    shop.assert_each_record_once()


@pytest.mark.long
@pytest.mark.parametrize("step", STATE_UPKEEP_STEPS)
def test_a_driver_killed_while_it_merges_deletes_leaves_the_state_right(
    shop_of: Callable[..., Shop], step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deletes of many batches name rows of the first one's file."""
    shop = shop_of(write=Upsert(), key_format="text", partitions=1)
    state = State(shop)
    for number in range(4 * MANY_DELETE_FILES):
        state.put(number, "first", partition=0)
    shop.drain()
    shop.pipeline = replace(shop.pipeline, engine=Spark(limits=Limits(first_rows=2, max_rows=2)))
    for number in range(MANY_DELETE_FILES):
        state.put(2 * number, "second", partition=0)
        state.delete(2 * number + 1, partition=0)
    with monkeypatch.context() as without_upkeep:
        without_upkeep.setattr(Upkeep, "_compact", lambda *_, **how: None)
        shop.drain()
    state.delete(2 * MANY_DELETE_FILES, partition=0)
    killed = shop.process(tmp_path, failpoints=f"{step}=kill")
    _, log = killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL, log
    state.check()
    assert delete_files(shop) > MANY_DELETE_FILES
    shop.drain()
    state.check()
    assert delete_files(shop) < MANY_DELETE_FILES


def delete_files(shop: Shop) -> int:
    return int(stored(shop).current_snapshot().summary["total-delete-files"])


@pytest.fixture
def half_accepted(shop_of: Callable[..., Shop]) -> Shop:
    """A shop whose operator decided to replay a rollback; the dead-letter table does not follow yet."""
    shop = shop_of(partitions=1)
    schema_id = shop.register()
    for first in (0, 4):
        shop.produce([*shop.orders(4, schema_id, first=first), b"bad!!"])
        shop.drain()
    table = shop.job().iceberg.load(shop.pipeline.table.identifier)
    table.manageSnapshots().rollbackTo(table.currentSnapshot().parentId()).commit()
    with pytest.raises(Crash):
        accept(shop.pipeline, Accepted.ROLLED_BACK_REPLAY, "test", shop.job(failpoint=crash_at("decide.decided")))
    return shop


@pytest.mark.long
def test_a_driver_that_died_while_it_finished_an_operators_decision_loses_and_doubles_nothing(
    half_accepted: Shop,
) -> None:
    with pytest.raises(Crash):
        half_accepted.drain(failpoint=crash_at("finish.removed"))
    assert len(half_accepted.dead()) == 1
    half_accepted.drain()
    half_accepted.assert_each_record_once()


@pytest.mark.long
def test_a_driver_killed_while_it_finishes_an_operators_decision_loses_and_doubles_nothing(
    half_accepted: Shop, tmp_path: Path
) -> None:
    killed = half_accepted.process(tmp_path, failpoints="finish.removed=kill")
    _, log = killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL, log
    assert len(half_accepted.dead()) == 1
    half_accepted.drain()
    half_accepted.assert_each_record_once()
