"""The write mode's own columns that an existing table gets again."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.declaration import Append, Changelog, Pipeline, Table, Topic, Upsert
from frazil.ingest.setup.existing_table import own_columns


@pytest.mark.parametrize(
    ("write", "former", "names"),
    [
        (Append(), ("_deleted_at",), []),
        (Upsert(on_tombstone="soft_delete"), (), []),
        (Upsert(on_tombstone="soft_delete"), ("_deleted_at",), ["_deleted_at"]),
        (Upsert(order_by="at"), ("_deleted_at",), ["_order"]),
        (Changelog(order_by="at"), (), ["_order", "_op", "_changed_at"]),
    ],
)
def test_soft_deletes_that_are_declared_later_add_their_column_elsewhere(
    write: Any, former: tuple[str, ...], names: list[str]
) -> None:
    pipeline = Pipeline(topic=Topic("orders", value="avro"), table=Table("shop.orders"), write=write)
    assert [field.name for field in own_columns(pipeline, former)] == names
