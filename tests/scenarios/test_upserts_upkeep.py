"""The driver of an upsert table compacts deleted rows between two of its batches."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from frazil.declaration import Keep, Limits, Upsert
from frazil.ingest import upkeep
from frazil.lake.ledger import entry as ledger
from frazil.maintain import between_batches
from frazil.maintain import compact as merge_deletes
from frazil.maintain.between_batches import BetweenBatches
from frazil.maintain.compact import compact
from frazil.maintain.lease import Lease
from frazil.maintain.target import MaintenanceRun, Policy, Status
from tests.scenarios.test_upserts import State
from tests.support import oracle
from tests.support.failpoint_steps import STATE_UPKEEP_STEPS
from tests.support.jobs import once
from tests.support.shop import Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.long]
KEYS = 6


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a few rows be many."""
    monkeypatch.setattr(between_batches, "MANY_DELETED_ROWS", 1)
    for module in (between_batches, merge_deletes):
        monkeypatch.setattr(module, "MANY_DELETE_FILES", 2)
    monkeypatch.setattr(between_batches, "SHARE_OF_TIME", 1.0)
    monkeypatch.setattr(upkeep, "COMPACT_EVERY", 2)


def busy(shop_of: ShopOf, version: int = 2, batches: int = 5) -> tuple[Shop, State]:
    """A topic whose records make so many batches, each of which replaces and deletes rows of those before."""
    limits = Limits(first_rows=KEYS, max_rows=KEYS)
    shop = shop_of(write=Upsert(), key_format="text", limits=limits, table={"format_version": version})
    state = State(shop)
    for number in range(batches):
        state.delete(number % KEYS)
        for key in range(1, KEYS):
            state.put((number + key) % KEYS, f"of {number}")
    return shop, state


@pytest.mark.parametrize("version", [2, 3])
def test_deleted_rows_leave_the_files_between_batches(shop_of: ShopOf, version: int) -> None:
    shop, state = busy(shop_of, version)
    state.settle()
    done = shop.seen("files_compacted")
    assert [event["ended"] for event in done] == ["done"] * len(done)
    assert done
    names = [event["event"] for event in shop.events]
    assert "batch_committed" in names[names.index("files_compacted") :]  # not only at the end of the run
    table = shop.stored
    assert int(table.current_snapshot().summary["total-records"]) == len(state.now)
    tagged = table.snapshot_by_id(table.refs()[ledger.tag(shop.pipeline.name)].snapshot_id)
    assert ledger.END in tagged.summary.additional_properties
    state.put(1, "after")
    state.delete(2)
    state.settle()
    assert not shop.seen("foreign_commit")
    assert oracle.contents(shop.lake, shop.pipeline.table.identifier) == {0, 1}  # no delete is by equality


@pytest.mark.parametrize("step", ["compact.rewritten", "compact.committed", *STATE_UPKEEP_STEPS])
def test_a_driver_that_dies_in_a_compaction_leaves_the_state_right(shop_of: ShopOf, step: str) -> None:
    shop, state = busy(shop_of)
    shop.die(step)
    state.settle()


def test_a_second_driver_that_lands_during_a_compaction_fences_the_first(shop_of: ShopOf) -> None:
    shop, state = busy(shop_of)

    def twin() -> None:
        # On a thread of its own: the jobs of this one have the tag by which a compaction over its budget is cancelled.
        with ThreadPoolExecutor(1) as own:
            own.submit(shop.drain).result()

    assert shop.drain(failpoint=once("compact.rewritten", twin)).fenced
    state.check()
    assert "conflict" in [event["ended"] for event in shop.seen("files_compacted")]


def test_a_compaction_beside_maintenance_is_one_of_the_two(shop_of: ShopOf) -> None:
    shop, state = busy(shop_of, version=3)

    def maintained() -> None:
        assert compact(MaintenanceRun(shop.job(), Policy()), shop.target, Lease()).ended is Status.DONE

    shop.drain(failpoint=once("compact.rewritten", maintained))
    state.check()
    assert "conflict" in [event["ended"] for event in shop.seen("files_compacted")]


def test_a_budget_that_is_over_ends_a_compaction(shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch) -> None:
    shop, state = busy(shop_of)
    monkeypatch.setattr(upkeep, "COMPACT_EVERY", 99)
    with monkeypatch.context() as never:  # nor at the run's end
        for many in ("MANY_DELETED_ROWS", "MANY_DELETE_FILES", "MANY_SMALL_AT_END"):
            never.setattr(between_batches, many, 99)
        shop.drain()
    before = shop.stored.current_snapshot().snapshot_id
    cut_short = BetweenBatches(shop.job(), shop.pipeline, 0.0001).compact()
    assert cut_short is not None
    assert (cut_short.ended, cut_short.snapshots) == (Status.STOPPED, 0)
    assert shop.stored.current_snapshot().snapshot_id == before
    state.check()
    enough = BetweenBatches(shop.job(), shop.pipeline, 60.0).compact()
    assert enough is not None
    assert (enough.ended, enough.why) == (Status.DONE, "")
    assert enough.snapshots
    assert shop.stored.current_snapshot().summary["total-delete-files"] == "0"
    state.check()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("partition_by", [(), ("bucket(2, order_id)",)])
@pytest.mark.parametrize("keys", ["growing", "hot", "random"])
def test_the_files_of_a_small_table_stay_few_whatever_its_keys(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch, version: int, partition_by: tuple[str, ...], keys: str
) -> None:
    for module in (between_batches, merge_deletes):
        monkeypatch.setattr(module, "MANY_DELETE_FILES", 4)
    monkeypatch.setattr(between_batches, "MANY_SMALL", 4)
    table = {"format_version": version, "partition_by": partition_by, "snapshots": Keep(5)}
    shop = shop_of(write=Upsert(key="order_id"), table=table, limits=Limits(first_rows=3, max_rows=3))
    state, chance = State(shop), random.Random(5)
    for number in range(24):
        at = {"growing": range(3 * number, 3 * number + 3), "hot": range(3), "random": chance.sample(range(40), 3)}[
            keys
        ]
        for key in at:
            state.put(key, f"of {number}", partition=0)
    state.settle()
    totals = shop.stored.current_snapshot().summary
    partitions = 2 if partition_by else 1
    assert int(totals["total-data-files"]) <= 8 * partitions
    assert int(totals["total-delete-files"]) <= 8 * partitions


def test_a_run_leaves_few_small_files(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(key="order_id"), limits=Limits(first_rows=3, max_rows=3))
    state = State(shop).land("new", range(3 * between_batches.MANY_SMALL_AT_END))
    state.check()
    assert shop.stored.current_snapshot().summary["total-data-files"] == "1"
