"""Spark compiles the code of a pipeline's batches once: a value that differs from batch to batch is not part of it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

import pytest

from frazil.declaration import Append, Changelog, Upsert
from tests.scenarios.test_upserts_attacked import Keyed, order, record
from tests.support.shop import ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
WRITES: dict[str, Any] = {
    "append": Append(),
    "changelog": Changelog(),
    "state": Upsert(),
    "ordered": Upsert(order_by="_kafka_timestamp"),
    "soft_delete": Upsert(on_tombstone="soft_delete"),
}
EPOCH_MS = 1_760_000_000_000


@pytest.mark.long
@pytest.mark.parametrize(
    ("write", "batches"), [pytest.param(write, 7 if name == "state" else 12, id=name) for name, write in WRITES.items()]
)
def test_a_batch_like_the_one_before_compiles_no_code(shop_of: ShopOf, write: Any, batches: int) -> None:
    """Each batch has keys of its own, changes some of the one before, and deletes one where there are deletes.

    Upkeep between two batches has code of its own, so one of the later batches counts.
    """
    shop = shop_of(write=write, key_format="avro")
    keyed = Keyed(shop, record("Key", order_id="long"))
    metrics = cast(Any, shop.spark._jvm).org.apache.spark.metrics.source.CodegenMetrics
    compiled = metrics.METRIC_COMPILATION_TIME()
    counts = []
    for batch in range(batches):
        for number in range(10 * batch - 5, 10 * batch + 10):
            at = EPOCH_MS + 1000 * (100 * batch + number)
            is_delete = number == 10 * batch - 3 and not isinstance(write, Append)
            keyed.put({"order_id": number}, None if is_delete else order(number, f"of batch {batch}"), timestamp=at)
        shop.drain()
        counts.append(int(compiled.getCount()))
    assert shop.landed()
    assert 0 in [after - before for before, after in pairwise(counts)][3:]
