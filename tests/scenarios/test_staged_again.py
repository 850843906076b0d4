"""A staged batch that cannot be committed as it is: it is staged again, and the run goes on."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frazil.declaration import Limits
from frazil.ingest.loop import ATTEMPTS, Ingestion
from frazil.lake.commit.fence import StageAgain
from tests.support.registry_server import RegistryServer
from tests.support.shop import ORDER, Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
SMALL = Limits(first_rows=200, max_rows=200)
RENAMED = {
    **ORDER,
    "fields": [{**f, "name": "customer", "aliases": ["user"]} if f["name"] == "user" else f for f in ORDER["fields"]],
}


@pytest.mark.long
def test_a_rename_by_alias_while_a_batch_is_published_ends_no_run(
    shop_of: ShopOf, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, store = shop_of(partitions=1, limits=SMALL), registry.store
    schema_id = store.register(f"{shop.topic}-value", json.dumps(ORDER))
    shop.produce([*shop.orders(400, schema_id), *shop.orders(200, schema_id + 1, first=400)])
    publishing, evolving, settling = threading.Event(), threading.Event(), threading.Event()
    settle, evolved_meanwhile = Ingestion._settle, list[bool]()

    def settled(self: Ingestion, *pending: Any) -> None:
        settling.set()
        try:
            settle(self, *pending)
        finally:
            settling.clear()

    def failpoint(step: str) -> None:
        if step == "publish.filled" and threading.current_thread().name.startswith("publish"):
            if not publishing.is_set():
                assert store.register(f"{shop.topic}-value", json.dumps(RENAMED)) == schema_id + 1
            publishing.set()
            deadline = time.monotonic() + 30
            while not (evolving.is_set() or settling.wait(0.05)):
                assert time.monotonic() < deadline
        elif step == "publish.committed":
            publishing.clear()
        elif step == "evolve.filled":
            evolved_meanwhile.append(publishing.is_set())
        elif step == "evolve.committed":
            evolving.set()

    monkeypatch.setattr(Ingestion, "_settle", settled)
    assert shop.drain(registry=shop.registry(registry.url), failpoint=failpoint).written == 600
    assert evolved_meanwhile == [False]
    assert [event["changes"] for event in shop.seen("schema_evolved")] == [["column user renamed to customer"]]
    assert "customer" in shop.landed()[0]
    shop.assert_each_record_once()


def hours_pass(shop: Shop, clock: list[float]) -> None:
    clock[0] += 7 * 3600


def files_go(shop: Shop, clock: list[float]) -> None:
    clock[0] += 120
    warehouse = Path(str(shop.lake.catalog.warehouse).removeprefix("file://"))  # type: ignore[union-attr]
    newest = max((warehouse / "shop" / shop.topic / "data").rglob("*.parquet"), key=lambda path: path.stat().st_mtime)
    newest.unlink()


@pytest.mark.parametrize(
    ("harm", "hit"),
    [
        pytest.param(hours_pass, 1, id="hours_pass-a batch with others behind it"),
        pytest.param(files_go, 3, id="files_go-the last batch", marks=pytest.mark.long),
        pytest.param(hours_pass, 3, id="hours_pass-the last batch", marks=pytest.mark.long),
        pytest.param(files_go, 1, id="files_go-a batch with others behind it", marks=pytest.mark.long),
    ],
)
def test_a_batch_whose_files_are_old_or_gone_is_staged_again(
    shop_of: ShopOf, harm: Callable[[Shop, list[float]], None], hit: int
) -> None:
    shop = shop_of(partitions=1, limits=SMALL)
    shop.produce(shop.orders(600, shop.register()))
    late, hits = [0.0], [0]

    def failpoint(step: str) -> None:
        hits[0] += step == "stage.done"
        if step == "stage.done" and hits[0] == hit:
            harm(shop, late)

    assert shop.drain(failpoint=failpoint, clock=lambda: time.time() + late[0]).written == 600
    (again,) = shop.seen("batch_retried")
    assert again["attempt"] == 1
    shop.assert_each_record_once()


@pytest.mark.long
def test_a_batch_that_never_can_be_committed_ends_the_run_after_some_attempts(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1, limits=SMALL)
    shop.produce(shop.orders(300, shop.register()))
    late = [0.0]

    def failpoint(step: str) -> None:
        late[0] += 7 * 3600 if step == "stage.done" else 0

    with pytest.raises(StageAgain, match="hours ago"):
        shop.drain(failpoint=failpoint, clock=lambda: time.time() + late[0])
    assert len(shop.seen("batch_retried")) == ATTEMPTS - 1
    assert shop.landed() == []
    shop.drain()
    shop.assert_each_record_once()


@pytest.mark.long
def test_a_column_renamed_by_hand_while_its_batch_is_published_loses_nothing(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1, limits=SMALL)
    shop.produce(shop.orders(300, shop.register()))
    done = list[str]()

    def failpoint(step: str) -> None:
        if step == "publish.decided" and shop.seen("pipeline_started") and "stage" in done:
            done.remove("stage")
            job = shop.job()
            job.iceberg.load(shop.pipeline.table.identifier).updateSchema().renameColumn("user", "buyer").commit()
        elif step == "stage.done" and "once" not in done:
            done.extend(["once", "stage"])

    assert shop.drain(failpoint=failpoint).written == 300
    assert sum(row["buyer"] is not None for row in shop.landed()) >= 200
    shop.assert_each_record_once()
