from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from frazil.audit.files.file_scan import Columns, is_dense, is_foreign
from frazil.lake.read.data_files import Bounds, DataFile

COLUMNS = Columns("topic", "partition", "offset")


def file(
    *, rows: int = 10, topic: Any = ("orders", "orders", 0), partition: Any = (3, 3, 0), offset: Any = (100, 109, 0)
) -> DataFile:
    bounds = {"topic": Bounds(*topic), "partition": Bounds(*partition), "offset": Bounds(*offset)}
    return DataFile(path="f", format="PARQUET", rows=rows, bytes=1, spec_id=0, partition=None, bounds=bounds)


def test_a_file_of_one_partition_without_gaps_is_dense() -> None:
    assert is_dense(file(), COLUMNS, "orders")


@pytest.mark.parametrize(
    "other",
    [
        file(rows=9),
        file(rows=11),
        file(partition=(3, 4, 0)),
        file(topic=("orders", "payments", 0)),
        file(topic=(None, None, None)),
        file(partition=(None, None, None)),
        file(offset=(None, None, None)),
        file(offset=(100, 109, 1)),
        file(offset=(100, 109, None)),
        file(rows=0),
        replace(file(), deletes=("a delete file",)),
        replace(file(), bounds={}),
    ],
    ids=[
        "a row less",
        "a row more",
        "two partitions",
        "two topics",
        "no bounds of topics",
        "no bounds of partitions",
        "no bounds of offsets",
        "a null",
        "nulls unknown",
        "no rows",
        "deletes apply",
        "no metrics",
    ],
)
def test_whatever_leaves_a_doubt_is_not_dense(other: DataFile) -> None:
    assert not is_dense(other, COLUMNS, "orders")


def test_a_name_that_metrics_cut_is_in_doubt() -> None:
    """Two long names may begin alike; tables of older versions keep 16 characters of them."""
    topic = "shop.public.orders.v1"
    cut = file(topic=("shop.public.orde", "shop.public.ordf", 0))
    assert not is_dense(cut, COLUMNS, topic)
    assert is_dense(file(topic=(topic, topic, 0)), COLUMNS, topic)


def test_a_file_is_foreign_if_its_bounds_leave_the_topic_out() -> None:
    assert is_foreign(Bounds("payments", "payments", 0), "orders")
    assert is_foreign(Bounds("a", "b", 0), "orders")
    for doubt in (
        Bounds("a", "z", 0),
        Bounds("shop.public.orde", "shop.public.ordf", 0),
        Bounds(None, None, None),
        None,
    ):
        assert not is_foreign(doubt, "shop.public.orders.v1")
    assert not is_foreign(Bounds("payments", "payments", 1), "orders")
