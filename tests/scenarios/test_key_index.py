"""The driver of an upsert table finds keys by an index, where searches cost more than it does."""

from __future__ import annotations

import json

import pytest

from frazil.declaration import Limits, Upsert
from frazil.errors import KeysMoved
from frazil.ingest import upkeep
from frazil.maintain import between_batches
from frazil.write import upsert
from frazil.write.mode_of import mode_of
from tests.scenarios.test_upserts import State
from tests.support.agreeing_index import AgreeingIndex
from tests.support.shop import Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
KEYS = 6


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have an index pay at once, compared with the search for each batch; and few deleted rows be many."""
    monkeypatch.setattr(upsert, "IndexResolver", AgreeingIndex)
    monkeypatch.setattr(between_batches, "MANY_DELETED_ROWS", 1)
    monkeypatch.setattr(between_batches, "SHARE_OF_TIME", 1.0)
    monkeypatch.setattr(upkeep, "COMPACT_EVERY", 2)


def shop_with(shop_of: ShopOf, **options: object) -> Shop:
    limits = Limits(first_rows=KEYS, max_rows=KEYS)
    return shop_of(**{"write": Upsert(), "key_format": "text", "limits": limits, **options})


@pytest.mark.long
def test_keys_are_found_by_an_index_between_compactions(shop_of: ShopOf) -> None:
    shop = shop_with(shop_of)
    state = State(shop)
    for number in range(6):
        state.delete(number % KEYS)
        for key in range(1, KEYS):
            state.put((number + key) % KEYS, f"of {number}")
    state.settle()
    names = [event["event"] for event in shop.events]
    assert "files_compacted" in names[names.index("key_index_built") :]
    (built,) = shop.seen("key_index_built")
    assert built["rows"] > 0
    assert built["table"] == shop.pipeline.table.identifier
    assert not shop.seen("key_index_dropped")
    assert json.dumps(built)


@pytest.mark.long
def test_a_key_that_moved_is_found_by_its_partition_in_the_index(shop_of: ShopOf) -> None:
    shop = shop_with(shop_of, limits=Limits(first_rows=1, max_rows=1))
    state = State(shop)
    for word in ("first", "second", "third"):
        state.put(0, word)
    shop.drain()
    assert shop.seen("key_index_built")
    state.put(1, "its partition is 1")
    state.put(1, "which the index knows")
    state.put(1, "and compares", partition=0)
    with pytest.raises(KeysMoved):
        shop.drain()


@pytest.mark.parametrize("write", [Upsert(on_tombstone="soft_delete"), Upsert(order_by="_kafka_timestamp")], ids=str)
def test_tables_whose_batches_need_more_than_places_have_no_index(shop_of: ShopOf, write: Upsert) -> None:
    shop = shop_with(shop_of, write=write, table={"partition_by": ("user",)})
    mode = mode_of(shop.pipeline)
    assert isinstance(mode, upsert.UpsertMode)
    mode.begin(shop.job(), lambda *_: None)
    assert mode.resolver is None
