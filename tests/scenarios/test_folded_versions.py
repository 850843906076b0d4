"""Records of one key with two versions of the schema in one batch are folded in the table's row type."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.declaration import Upsert
from tests.support.shop import Shop, ShopOf, avro, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
AT = 1_700_000_000


def optional(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Order", "fields": [{"name": "order_id", "type": "int"}, *fields]}


NARROW = record(optional("amount", "int"), optional("removed", "string"))
WIDE = record(optional("amount", "long"), optional("added", "int"))  # wider, with another column, without one
BIG = 2**40
Row = tuple[
    int | None, str | None, int | None, bool
]  # amount, removed, added, and whether the row is marked as deleted


class Versions:
    """A topic of one partition whose records have one of two versions of the schema."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.ids = {"narrow": shop.register(NARROW)}

    def evolve(self) -> None:
        self.ids["wide"] = self.shop.register(WIDE)

    def narrow(self, key: int, amount: int) -> None:
        value = {"order_id": key, "amount": amount, "removed": f"of {amount}"}
        self._put(key, frame(self.ids["narrow"], avro(NARROW, value)))

    def wide(self, key: int, amount: int) -> None:
        value = {"order_id": key, "amount": amount, "added": amount % 1000}
        self._put(key, frame(self.ids["wide"], avro(WIDE, value)))

    def delete(self, key: int) -> None:
        self._put(key, None)

    def rows(self) -> dict[str, Row]:
        return {
            row["_kafka_key"]: (row["amount"], row["removed"], row["added"], row.get("_deleted_at") is not None)
            for row in self.shop.landed()
        }

    def _put(self, key: int, value: bytes | None) -> None:
        self.shop.produce([value], partition=0, key=f"k{key}".encode(), timestamp=AT * 1000)


@pytest.mark.parametrize("deletion", ["soft_delete", pytest.param("delete", marks=pytest.mark.long)])
def test_versions_of_one_key_are_folded_in_one_batch(shop_of: ShopOf, deletion: str) -> None:
    shop = shop_of(write=Upsert(on_tombstone=deletion), key_format="text", partitions=1)
    made = Versions(shop)
    for key in (0, 1, 2):
        made.narrow(key, 100 + key)
    shop.drain()
    made.evolve()
    made.narrow(10, 1)
    made.wide(10, BIG + 1)
    made.wide(11, BIG)
    made.narrow(11, 2)
    made.narrow(12, 3)
    made.delete(12)  # keeps the values of the narrow record
    made.wide(13, BIG + 4)
    made.delete(13)  # and those of the wide one
    made.delete(14)
    made.wide(14, BIG + 5)
    made.narrow(14, 6)
    made.wide(14, BIG + 7)
    made.wide(0, BIG + 8)
    made.narrow(0, 9)
    made.delete(1)  # keeps those of the row, which was written before the columns changed
    shop.drain()
    marked: dict[str, Row] = {
        "k1": (101, "of 101", None, True),
        "k12": (3, "of 3", None, True),
        "k13": (BIG + 4, None, (BIG + 4) % 1000, True),
    }
    assert made.rows() == {
        "k0": (9, "of 9", None, False),
        "k2": (102, "of 102", None, False),
        "k10": (BIG + 1, None, (BIG + 1) % 1000, False),
        "k11": (2, "of 2", None, False),
        "k14": (BIG + 7, None, (BIG + 7) % 1000, False),
        **(marked if deletion == "soft_delete" else {}),
    }
    assert len(shop.seen("batch_committed")) == 2
    assert len(shop.landed()) == len(made.rows())
    shop.assert_proven()
