"""From a row to its record by another decoder, and from an offset to what became of its record."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.clients.secrets import Secrets
from frazil.declaration import Redact, Shape, Upsert
from frazil.errors import InvalidInput
from frazil.lake.read.stored_tables import Lake
from frazil.trace.comparison import Verdict
from frazil.trace.trace import Fate, Tracer
from tests.support.repaired_shop import Repaired, produce
from tests.support.shop import Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def tracer(shop: Shop, registry: Any = None) -> Tracer:
    return Tracer(shop.pipeline, Lake(shop.lake, Secrets({}).read), shop.job().kafka, registry or shop.registry())


def test_a_row_leads_to_its_record_and_its_commit(repaired: Repaired) -> None:
    produce(repaired)
    repaired.repair()
    landed = repaired.shop.entry()
    repaired.replay()
    at = tracer(repaired.shop, repaired.shop.registry(repaired.registry.url))
    (found,), count = at.of_rows("order_id = 3")
    assert (count, found.fate, found.partition, found.offset) == (1, Fate.ROW, 0, 3)
    assert (found.snapshot_id, found.schema_id) == (landed.snapshot_id, repaired.first)
    assert {one.column: one.verdict for one in found.compared} == {
        "order_id": Verdict.SAME,
        "user": Verdict.SAME,
        "amount": Verdict.SAME,
        "note": Verdict.ABSENT,
    }
    (replayed,), _ = at.of_rows("user = 'e' and order_id = 5")
    assert (replayed.snapshot_id, replayed.schema_id) == (repaired.shop.entry().snapshot_id, repaired.second)
    assert not replayed.differs
    assert at.of_offset(0, 5).fate is Fate.ROW
    bad = at.of_offset(0, 6)
    assert (bad.fate, bad.notes[0].split(":")[0], bad.snapshot_id) == (
        Fate.DEAD_LETTER,
        "wrong_magic",
        landed.snapshot_id,
    )
    assert at.of_offset(0, 99).fate is Fate.UNREAD
    with pytest.raises(InvalidInput, match="not a condition"):
        at.of_rows("order_id = ")


def test_a_changed_row_differs(repaired: Repaired) -> None:
    produce(repaired)
    repaired.shop.sql("UPDATE {} SET user = 'x' WHERE order_id = 3")
    (found,), _ = tracer(repaired.shop, repaired.shop.registry(repaired.registry.url)).of_rows("order_id = 3")
    assert found.differs


def test_filtered_superseded_and_deleted_records(shop_of: ShopOf) -> None:
    columns = {"value_format": "json", "columns": ("id long", "kind string", "card string")}
    shape = Shape(where="kind <> 'test'", mask={"card": Redact()})
    shop = shop_of(**columns, write=Upsert(key="id"), shape=shape, partitions=1)
    rows = [{"id": 1, "kind": "a", "card": "4711"}, {"id": 1, "kind": "b", "card": "4712"}, {"id": 2, "kind": "test"}]
    shop.produce([json.dumps(row).encode() for row in rows], partition=0)
    shop.drain()
    at = tracer(shop)
    assert [at.of_offset(0, offset).fate for offset in range(3)] == [Fate.SUPERSEDED, Fate.ROW, Fate.NO_ROW]
    (found,), _ = at.of_rows("id = 1")
    assert {one.column: one.verdict for one in found.compared}["card"] is Verdict.MASKED
    assert "4712" not in json.dumps(found.document(), default=str)


def test_a_filtered_record_of_an_append_table(shop_of: ShopOf) -> None:
    shop = shop_of(
        value_format="json",
        columns=("id long", "kind string"),
        shape=Shape(where="kind <> 'test'"),
        partitions=1,
    )
    shop.produce([b'{"id": 1, "kind": "test"}', b'{"id": 2, "kind": "a"}'], partition=0)
    shop.drain()
    found = tracer(shop).of_offset(0, 0)
    assert (found.fate, found.notes) == (Fate.LEFT_OUT, ("its commit filtered 1 records: where",))
