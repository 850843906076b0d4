"""`kill -9` at each step of a batch, of driver and JVM, then another driver goes on: nothing lost, nothing doubled."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from frazil.declaration import Limits, Spark, Upsert
from frazil.exit_codes import Exit
from frazil.ingest.upkeep import Upkeep
from frazil.lake.rewrite import MANY_DELETE_FILES
from frazil.recovery.decisions import Accepted
from tests.scenarios.test_upserts import State
from tests.support.failpoint_steps import STATE_UPKEEP_STEPS, STEPS
from tests.support.jobs import Crash, crash_at
from tests.support.shop import ORDER, Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
MORE = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
OF_A_NEW_TABLE = ("begin.resolved",)
KILLED = ("publish.filled",)
"""Where every run of the tests kills a process of its own; the others are long, as each starts a JVM."""


def prepared(shop: Shop, step: str) -> None:
    """A topic whose next batch passes every step: a new column, good records, bad ones."""
    first = shop.register()
    shop.produce(shop.orders(20, first))
    if step not in OF_A_NEW_TABLE:
        shop.drain()
    second = shop.register(MORE)
    shop.produce([*shop.orders(20, second, first=20, schema=MORE), b"bad!!", b"worse", None])


def kill(shop: Shop, folder: Path, step: str) -> None:
    """Run a driver in a process of its own, which is killed at a step."""
    killed = shop.process(folder, failpoints=f"{step}=kill")
    _, log = killed.communicate(timeout=600)
    assert killed.returncode == -signal.SIGKILL, log


@pytest.mark.parametrize("step", [s if s in KILLED else pytest.param(s, marks=pytest.mark.long) for s in STEPS])
def test_a_driver_killed_at_a_step_loses_and_doubles_nothing(shop: Shop, step: str, tmp_path: Path) -> None:
    prepared(shop, step)
    kill(shop, tmp_path, step)
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
    shop_of: ShopOf, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deletes of many batches name rows of the first one's file."""
    shop = shop_of(write=Upsert(), key_format="text", partitions=1)
    state = State(shop).land("first", range(4 * MANY_DELETE_FILES), partition=0)
    shop.pipeline = replace(shop.pipeline, engine=Spark(limits=Limits(first_rows=2, max_rows=2)))
    for number in range(MANY_DELETE_FILES):
        state.put(2 * number, "second", partition=0)
        state.delete(2 * number + 1, partition=0)
    with monkeypatch.context() as without_upkeep:
        without_upkeep.setattr(Upkeep, "_compact", lambda *_, **how: None)
        shop.drain()
    state.delete(2 * MANY_DELETE_FILES, partition=0)
    kill(shop, tmp_path, step)
    state.check()
    assert delete_files(shop) > MANY_DELETE_FILES
    state.settle()
    assert delete_files(shop) < MANY_DELETE_FILES


def delete_files(shop: Shop) -> int:
    return int(shop.stored.current_snapshot().summary["total-delete-files"])


@pytest.mark.long
def test_a_driver_killed_while_it_finishes_an_operators_decision_loses_and_doubles_nothing(
    shop_of: ShopOf, tmp_path: Path
) -> None:
    """The operator decided to replay a rollback, and the dead-letter table did not follow yet."""
    shop = shop_of(partitions=1)
    schema_id = shop.register()
    for first in (0, 4):
        shop.produce([*shop.orders(4, schema_id, first=first), b"bad!!"])
        shop.drain()
    shop.roll_back()
    with pytest.raises(Crash):
        shop.accept(Accepted.ROLLED_BACK_REPLAY, failpoint=crash_at("decide.decided"))
    kill(shop, tmp_path, "finish.removed")
    assert len(shop.dead()) == 1
    shop.drain()
    shop.assert_each_record_once()
