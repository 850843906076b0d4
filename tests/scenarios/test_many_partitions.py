"""Many partitions share tasks and files, and each is accounted for by itself."""

from __future__ import annotations

import pytest

from frazil.ingest.batch import read
from frazil.ingest.batch.read import LEAST_TASKS, SEPARATE_RANGES
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger import entry as ledger_entry
from tests.support.shop import Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.long]
MOST_FILES = 20


def files(shop: Shop) -> list[int]:
    """How many data files each snapshot of the table added, the first first."""
    snapshots = shop.table.snapshots()
    added = (snapshot.summary().get("added-data-files") for snapshot in snapshots)
    return [int(number) for number in added if number]


def land(shop: Shop, partitions: int) -> None:
    for partition in range(partitions):
        shop.produce([b"v", None], partition=partition)
    total = shop.drain()
    assert (total.written, total.rejected) == (partitions, {"tombstone": partitions})


def assert_accounts(shop: Shop, partitions: int, *, batches: int) -> None:
    found = shop.verified(deep=True)
    assert found.outcome == "proven", [str(f) for f in found.findings]
    accounts = [(a.partition, a.read, a.landed, a.dead_lettered) for a in found.partitions]
    assert accounts == [(p, 2 * batches, batches, batches) for p in range(partitions)]


def test_more_ranges_than_tasks_are_worth_share_tasks_and_files(shop_of: ShopOf) -> None:
    many = SEPARATE_RANGES + 1
    shop = shop_of(partitions=many, value_format="text")
    land(shop, many)
    land(shop, many)
    assert files(shop) == [LEAST_TASKS, LEAST_TASKS]
    assert_accounts(shop, many, batches=2)


def test_a_topic_that_gets_so_many_partitions_that_fetches_shrink_is_read_on(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "FETCHED_BYTES", 2 * read.FETCH_BYTES)
    shop = shop_of(partitions=2, value_format="text")
    run = shop.ingestion()
    for partitions in (2, 4, 9):
        if partitions > 2:
            shop.add_partitions(partitions)
        for partition in range(partitions):
            shop.produce([b"v"], partition=partition)
        run.drain()
    shop.assert_each_record_once()


def formats(shop: Shop) -> list[str | None]:
    """The ledger's format in each commit, the first first, and of the dead-letter table's in the same order."""
    tables = (shop.pipeline.table.identifier, shop.pipeline.table.dead_letters)
    snapshots = [s for name in tables for s in shop.job().iceberg.load(name).snapshots()]
    return [snapshot.summary().get(ledger.FORMAT) for snapshot in snapshots]


def test_a_table_with_compact_and_plain_commits_is_continued_and_proven(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = shop_of(partitions=2, value_format="text")
    land(shop, 2)
    monkeypatch.setattr(ledger_entry, "MOST_PLAIN", 20)
    land(shop, 2)
    land(shop, 2)
    monkeypatch.undo()
    land(shop, 2)
    assert formats(shop) == ["1", "1", "2", "2", "1", "1", "2", "2", "1"]
    assert_accounts(shop, 2, batches=4)


def test_a_thousand_partitions_make_few_files(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1_000, value_format="text")
    land(shop, 1_000)
    land(shop, 1_000)
    assert max(files(shop)) <= MOST_FILES
    assert_accounts(shop, 1_000, batches=2)
