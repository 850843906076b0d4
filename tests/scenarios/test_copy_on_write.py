"""Tables of current state whose batches write data files again, on a real broker and registry."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from frazil.declaration import Deletes, ErrorMode, KeyFormat, Limits, Spark, Upsert
from frazil.errors import RowsWouldChange
from frazil.lake.deletes import files_written_again, positions
from frazil.lake.deletes.files_written_again import CopyOnWrite
from frazil.lake.iceberg_java import Iceberg
from frazil.maintain.compact import compact
from frazil.maintain.lease import Lease
from frazil.maintain.target import MaintenanceRun, Policy, Target
from tests.scenarios.test_debezium import check_flattened, debezium
from tests.scenarios.test_ordered_upserts import BY_TIME, state_of
from tests.scenarios.test_upserts import Died, ShopOf, State, changed, stored
from tests.support.debezium_events import Flattened
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
COPIES = Upsert(deletes=Deletes.COPY_ON_WRITE)


def copies(shop_of: ShopOf, version: int = 2, **table: object) -> Shop:
    table = {"format_version": version, **table}
    return shop_of(write=COPIES, key_format=KeyFormat.TEXT, on_error=ErrorMode.LOG, table=table)


def delete_files(shop: Shop) -> int:
    return int(stored(shop).current_snapshot().summary.get("total-delete-files", 0))


@pytest.mark.parametrize("version", [2, pytest.param(3, marks=pytest.mark.long)])
def test_no_reader_has_deletes_to_merge(shop_of: ShopOf, version: int) -> None:
    shop = copies(shop_of, version)
    state = changed(shop)
    shop.drain()
    state.check()
    assert delete_files(shop) == 0
    assert int(stored(shop).current_snapshot().summary["total-records"]) == len(state.now)
    for number in range(9):
        state.delete(number)
    shop.drain()
    state.check()
    state.put(1, "again")
    shop.drain()
    state.check()


@pytest.mark.long
@pytest.mark.parametrize("version", [2, 3])
def test_keys_that_are_too_many_to_broadcast_make_no_more_files(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Each task of a join would write a file for each partition of the table."""
    shop = copies(shop_of, version, partition_by=("bucket(4, order_id)",))
    state = State(shop)
    for number in range(120):
        state.put(number, "first")
    shop.drain()
    before = files(shop)
    for number in range(0, 120, 5):
        state.put(number, "second")
    monkeypatch.setattr(positions, "BROADCAST_AT_MOST", 3)
    large = {
        "spark.sql.shuffle.partitions": "16",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    kept = {name: shop.spark.conf.get(name) for name in large}
    try:
        for name, value in large.items():
            shop.spark.conf.set(name, value)
        shop.drain()
    finally:
        for name, value in kept.items():
            shop.spark.conf.set(name, str(value))
    state.check()
    assert delete_files(shop) == 0
    assert len(before) == 4
    assert len(files(shop)) <= 8, "those of the rows that stay, and those of the batch"


def files(shop: Shop) -> list[str]:
    return [task.file.file_path for task in stored(shop).scan().plan_files()]


@pytest.mark.long
def test_a_rewrite_that_dies_of_memory_halves_the_batch(shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = copies(shop_of)
    state = State(shop)
    for number in range(16):
        state.put(number, "first")
    shop.drain()
    for number in range(16):
        state.put(number, "second")
    write, sizes = CopyOnWrite.write, list[int]()

    def dying(self: CopyOnWrite, iceberg: Iceberg, table: Any, head: int, found: Any, keys: Any, schema: Any) -> Any:
        """As a task would: batches of more than five keys end in an OutOfMemoryError."""
        sizes.append(keys.num_rows)
        if keys.num_rows > 5:
            shop.spark.sql("SELECT raise_error('java.lang.OutOfMemoryError: Java heap space')").collect()
        return write(self, iceberg, table, head, found, keys, schema)

    monkeypatch.setattr(CopyOnWrite, "write", dying)
    shop.drain(replace(shop.pipeline, engine=Spark(limits=Limits(first_rows=16))))
    state.check()
    assert sizes[:2] == [16, 16], "once more on the same head: another commit might have been the reason"
    assert sum(size > 5 for size in sizes) <= 6, "each batch that died makes the next ones smaller"


@pytest.mark.long
def test_rows_that_stay_keep_their_row_id(shop_of: ShopOf) -> None:
    shop = copies(shop_of, 3)
    table = f"{shop.lake.catalog.name}.{shop.pipeline.table.identifier}"

    def lineage() -> dict[int, tuple[int, int]]:
        rows = shop.spark.table(table).select("order_id", "_row_id", "_last_updated_sequence_number").collect()
        return {row[0]: (row[1], row[2]) for row in rows}

    state = changed(shop)
    before = lineage()
    shop.drain()
    state.check()
    after = lineage()
    assert {number: after[number] for number in (1, 2)} == {number: before[number] for number in (1, 2)}
    assert all(after[number][1] > before[number][1] for number in (3, 4, 5))


@pytest.mark.long
@pytest.mark.parametrize("version", [2, 3])
def test_the_way_of_deletes_may_change(shop_of: ShopOf, version: int) -> None:
    """Files that have deletes of merge-on-read are written again with these applied; others keep theirs."""
    shop = copies(shop_of, version, partition_by=("bucket(2, order_id)",), sort_by=("user",))
    dice = random.Random(version)
    state = State(shop)
    for round_ in range(7):
        way = Deletes.MERGE_ON_READ if round_ % 3 == 1 else Deletes.COPY_ON_WRITE
        shop.pipeline = replace(shop.pipeline, write=Upsert(deletes=way))
        for number in range(12):
            if dice.random() < 0.6:
                state.put(number, f"of {round_}")
            elif dice.random() < 0.5:
                state.delete(number)
        shop.drain()
        state.check()
    if version == 3:
        referenced = shop.spark.sql(
            f"SELECT referenced_data_file FROM {shop.lake.catalog.name}.{shop.pipeline.table.identifier}.delete_files"
        )
        files = {file.file.file_path for file in stored(shop).scan().plan_files()}
        assert {row[0] for row in referenced.collect()} <= files, "a vector of a file that is gone"


@pytest.mark.long
@pytest.mark.parametrize("version", [2, 3])
def test_late_records_and_soft_deletes_keep_their_rows(shop_of: ShopOf, version: int) -> None:
    state = state_of(shop_of, replace(BY_TIME, deletes=Deletes.COPY_ON_WRITE), version=version)
    dice = random.Random(7 * version)
    for _ in range(5):
        for _ in range(dice.randrange(3, 25)):
            word = None if dice.random() < 0.3 else f"w{dice.randrange(1000)}"
            state.produce(dice.randrange(6), word, at=dice.randrange(40))
        state.shop.drain()
        state.check()
    assert delete_files(state.shop) == 0


@pytest.mark.long
def test_values_that_are_left_out_come_from_the_row(shop_of: ShopOf) -> None:
    shop = debezium(shop_of, write=COPIES)
    check_flattened(Flattened(shop, partitions=2))
    assert delete_files(shop) == 0


@pytest.mark.long
@pytest.mark.parametrize(
    "step", ["stage.done", "publish.decided", "publish.searched", "publish.filled", "publish.committed"]
)
def test_files_are_written_once(shop_of: ShopOf, step: str) -> None:
    """Compaction, a twin or a death between search and commit."""
    shop = copies(shop_of)
    state = changed(shop)
    met: list[str] = []

    def compacted(reached: str) -> None:
        if reached == step and not met:
            met.append(reached)
            policy = Policy(grace_seconds=0)
            compact(MaintenanceRun(shop.job(), policy), Target(shop.pipeline, is_dead_letter_table=False), Lease.of({}))

    def dies(reached: str) -> None:
        if reached == step:
            raise Died

    shop.drain(failpoint=compacted)
    state.check()
    state.put(1, "third")
    state.delete(2)
    with pytest.raises(Died):
        shop.drain(failpoint=dies)
    met.clear()

    def twin(reached: str) -> None:
        if reached == step and not met:
            met.append(reached)
            shop.drain()

    state.put(4, "fourth")
    shop.drain(failpoint=twin)
    state.check()
    assert delete_files(shop) == 0


@pytest.mark.long
def test_a_commit_without_the_rows_that_stay_is_refused(shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = copies(shop_of)
    state = changed(shop)
    written: Callable[..., list[object]] = files_written_again.write_again
    monkeypatch.setattr(files_written_again, "write_again", lambda *a, **k: written(*a, **k)[:-1])
    with pytest.raises(RowsWouldChange, match="written again they have"):
        shop.drain()
    monkeypatch.undo()
    shop.drain()
    state.check()
    assert Iceberg(shop.spark).exists(shop.pipeline.table.identifier)
