"""Tables of format version 3, as they are read without Spark: by `status`, `check` and deep proofs."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.audit.verify import verify
from frazil.clients.secrets import Secrets
from frazil.declaration import Append, Upsert
from frazil.ingest.setup import existing_table
from frazil.lake.read.stored_tables import Lake
from frazil.status.pipeline_status import status_of
from tests.scenarios.test_upserts import State
from tests.support.shop import ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


@pytest.mark.parametrize("write", [Append(), Upsert()])
def test_a_table_of_format_version_3_has_a_layout_a_status_and_a_deep_proof(shop_of: ShopOf, write: Any) -> None:
    shop = shop_of(write=write, key_format="text", table={"format_version": 3})
    state, pipeline = State(shop), shop.pipeline
    for word in ("first", "second"):
        for number in range(4):
            state.put(number, word)
        shop.drain()  # a second batch of an upsert table writes deletion vectors
    lake = Lake(shop.environment, Secrets({}).read)
    table = lake.table(pipeline.table.identifier)
    assert table is not None
    assert existing_table.said(pipeline, table.layout) == ()
    shown = status_of(pipeline, table, why="asked", now=2e9)
    rows = 4 if isinstance(write, Upsert) else 8
    assert (shown.rows, shown.why, table.layout.format_version) == (rows, "asked", 3)
    deep = verify(pipeline, lake, deep=True)
    assert (deep.outcome, deep.findings, deep.cautions) == ("proven", (), ())
