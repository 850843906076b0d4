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
        pytest.param(file(rows=9), id="a row less"),
        pytest.param(file(rows=11), id="a row more"),
        pytest.param(file(partition=(3, 4, 0)), id="two partitions"),
        pytest.param(file(topic=("orders", "payments", 0)), id="two topics"),
        pytest.param(file(topic=(None, None, None)), id="no bounds of topics"),
        pytest.param(file(partition=(None, None, None)), id="no bounds of partitions"),
        pytest.param(file(offset=(None, None, None)), id="no bounds of offsets"),
        pytest.param(file(offset=(100, 109, 1)), id="a null"),
        pytest.param(file(offset=(100, 109, None)), id="nulls unknown"),
        pytest.param(file(rows=0), id="no rows"),
        pytest.param(replace(file(), deletes=("a delete file",)), id="deletes apply"),
        pytest.param(replace(file(), bounds={}), id="no metrics"),
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
