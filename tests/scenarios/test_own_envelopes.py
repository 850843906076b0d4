"""Tables of changes that have their own key and order, as other envelopes than Debezium's do; here that of the tests."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.declaration import ErrorMode, Upsert
from frazil.declaration.write_modes import Changelog, WriteMode
from frazil.errors import InvalidInput
from tests.envelopes.fields_envelope import Fields, FieldsEvents
from tests.scenarios.test_value_keys import Lines, record
from tests.support import shop as shops
from tests.support.shop import ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
CHANGE = record("Change", op="string", id="long", seq="long", word=["null", "string"])
BY_ID = Fields(operation="op", key=("id",), order=("seq",))
ORDERED = Upsert(key="id", order_by="seq", on_tombstone="soft_delete")


def topic(shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch, of: Fields, **declared: Any) -> Lines:
    """Return a topic whose records have this envelope, which no declaration can name."""
    shop = shop_of(**{"on_error": ErrorMode.DEAD_LETTER, "max_rejected_percent": 100, **declared})
    object.__setattr__(shop.pipeline, "envelope", of)
    monkeypatch.setattr(shops, "envelope", lambda _: FieldsEvents(of))
    return Lines(shop, CHANGE)


def put(lines: Lines, op: str, number: int | None, seq: int, word: str | None = None, **more: Any) -> None:
    lines.put({"op": op, "id": number, "seq": seq, "word": word}, **more)


def words(lines: Lines) -> dict[int, str]:
    return {row["id"]: row["word"] for row in lines.shop.landed() if row.get("_deleted_at") is None}


@pytest.mark.long
def test_deletes_find_their_rows_by_the_key_and_the_order_of_the_change(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No record has a key of its own, and the later change of a row may be in another partition, with a lower offset."""
    lines = topic(shop_of, monkeypatch, BY_ID, write=ORDERED)
    for number in range(5):
        put(lines, "insert", number, seq=10, word=f"first {number}")
    lines.shop.drain()
    put(lines, "delete", 0, seq=11)
    put(lines, "update", 0, seq=9, word="older than its delete", partition=1)
    put(lines, "delete", 1, seq=12, partition=1)
    put(lines, "update", 1, seq=13, word="newer than its delete")
    put(lines, "delete", 2, seq=8)  # older than the row of the table
    put(lines, "update", 3, seq=11, word="changed")
    put(lines, "delete", 9, seq=1)  # was never there
    put(lines, "ping", 4, seq=99)
    put(lines, "merge", 4, seq=99)
    assert lines.shop.drain().rejected == {"operation_unknown": 1}
    expected = {1: "newer than its delete", 2: "first 2", 3: "changed", 4: "first 4"}
    assert words(lines) == expected
    lines.shop.assert_proven(deep=True)


@pytest.mark.long
def test_deletes_are_rejected_that_name_no_row(shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tombstone has neither key nor order. Without a key of the change, a delete has none either."""
    lines = topic(shop_of, monkeypatch, Fields(operation="op"), write=Upsert(key="id"))
    put(lines, "insert", 1, seq=1, word="stays")
    put(lines, "delete", 1, seq=2)
    lines.put(None, b"1")
    assert lines.shop.drain().rejected == {"tombstone_names_no_row": 2}
    assert words(lines) == {1: "stays"}


@pytest.mark.long
def test_the_key_of_the_record_is_compared_and_names_the_row_of_a_tombstone(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = Fields(operation="op", key=("id",))
    lines = topic(shop_of, monkeypatch, of, write=Upsert(key="id"), key_format="avro")
    lines = Lines(lines.shop, CHANGE, record("Key", id="long"))
    for number in range(4):
        put(lines, "insert", number, seq=1, word=f"first {number}", key={"id": number})
    lines.shop.drain()
    put(lines, "delete", 0, seq=2, key={"id": 0})
    put(lines, "delete", 1, seq=2, key={"id": 2})
    put(lines, "delete", 2, seq=2)
    lines.put(None, {"id": 3})
    assert lines.shop.drain().rejected == {"key_mismatch": 1}
    assert words(lines) == {1: "first 1"}
    lines.shop.assert_proven(deep=True)


def test_a_changelog_has_key_and_order_of_deletes(shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = topic(shop_of, monkeypatch, BY_ID, write=Changelog(key="id", order_by="seq"))
    put(lines, "insert", 1, seq=1, word="w")
    put(lines, "delete", 1, seq=2)
    lines.shop.drain()
    rows = [(row["id"], row["_order"], row["seq"], row["_op"], row["word"]) for row in lines.shop.landed()]
    assert sorted(rows, key=str) == [(1, 1, 1, "w", "w"), (1, 2, 2, "d", None)]


@pytest.mark.parametrize(
    ("of", "write", "problem"),
    [(BY_ID, Upsert(key="id"), "ordered by seq"), (Fields(operation="op", key=("id",)), ORDERED, "offsets order them")],
    ids=["an order that the table has not", "an order that the changes have not"],
)
def test_an_order_is_never_ignored(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch, of: Fields, write: WriteMode, problem: str
) -> None:
    lines = topic(shop_of, monkeypatch, of, write=write)
    with pytest.raises(InvalidInput, match=problem) as refused:
        lines.shop.drain()
    assert "order_by" in refused.value.do
