"""The names of tables and files, from what is declared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from policies.documents import MANAGED_LIMIT, Below, characters, fill, placeholders
from tests.policies.example import NAMESPACES, PLACES, policy


def test_a_tables_files_are_where_iceberg_puts_them() -> None:
    """The recorded calls of the jobs (`calls.json`) say the same."""
    assert PLACES.prefix("shop.orders") == "lake/shop.db/orders"
    assert PLACES.databases == ["nyc", "shop"]


def test_a_document_gets_what_it_asks_for_and_no_more() -> None:
    values = PLACES.values("reader", key="k")
    assert set(values) == placeholders("reader")
    assert values["tables"] == ["shop/orders", "shop/orders__dead_letters", "nyc/flights", "nyc/flights__dead_letters"]


def test_a_namespace_is_named_once_however_many_tables_it_has() -> None:
    values = NAMESPACES.values("reader", key="k")
    assert values["tables"] == ["nyc/*", "shop/*"]
    assert values["table_prefixes"] == ["lake/nyc.db/*", "lake/shop.db/*"]
    many = replace(NAMESPACES, tables=[f"shop.t{number}" for number in range(1000)])
    few = replace(NAMESPACES, tables=["shop.t"])
    for role in ("ingest_job", "maintenance_job", "reader", "reconciler"):
        assert policy(role, many) == policy(role, few)
        assert characters(policy(role, many)) < MANAGED_LIMIT


def test_in_a_namespace_with_tables_of_other_roles_each_table_is_named() -> None:
    values = replace(NAMESPACES, shared={"shop"}).values("reader", key="k")
    assert values["tables"] == ["nyc/*", "shop/orders", "shop/orders__dead_letters"]
    assert values["table_prefixes"] == ["lake/nyc.db/*", "lake/shop.db/orders", "lake/shop.db/orders__dead_letters"]


@pytest.mark.parametrize("place", ["", "*", "shop/*", "sho?", "${aws:username}", "a b"])
def test_only_the_end_of_a_value_may_mean_more_than_itself(place: str) -> None:
    with pytest.raises(ValueError, match=r"tables\[0\]"):
        fill("reader", {**PLACES.values("reader", key="k"), "tables": [Below(place)]})
