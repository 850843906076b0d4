"""The names of tables and files, from what is declared."""

from __future__ import annotations

from policies.documents import placeholders
from tests.policies.example import PLACES


def test_a_tables_files_are_where_iceberg_puts_them() -> None:
    """The recorded calls of the jobs (`calls.json`) say the same."""
    assert PLACES.prefix("shop.orders") == "lake/shop.db/orders"
    assert PLACES.databases == ["nyc", "shop"]


def test_a_document_gets_what_it_asks_for_and_no_more() -> None:
    values = PLACES.values("reader", key="k")
    assert set(values) == placeholders("reader")
    assert values["tables"] == ["shop/orders", "shop/orders__dead_letters", "nyc/flights", "nyc/flights__dead_letters"]
