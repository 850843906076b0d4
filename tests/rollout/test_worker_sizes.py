"""Workers come in the sizes that EMR Serverless sells."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.declaration import InvalidDeclaration
from frazil.rollout.worker_sizes import MEMORY_GB, Worker, Workers


@pytest.mark.parametrize("cores", MEMORY_GB)
def test_every_size_that_is_sold_can_be_had(cores: int) -> None:
    for memory_gb in MEMORY_GB[cores]:
        assert Worker(cores=cores, memory_gb=memory_gb).memory_gb == memory_gb


@pytest.mark.parametrize(("cores", "memory_gb"), [(1, 9), (2, 3), (4, 31), (8, 18), (16, 36), (3, 8)])
def test_a_size_that_is_not_sold_is_refused(cores: int, memory_gb: int) -> None:
    with pytest.raises(InvalidDeclaration):
        Worker(cores=cores, memory_gb=memory_gb)


def test_the_most_that_workers_take_counts_the_driver() -> None:
    workers = Workers(driver=Worker(cores=2, memory_gb=8), executor=Worker(cores=4, memory_gb=16), least=1, most=3)
    assert (workers.most_cores, workers.most_memory_gb) == (14, 56)


@pytest.mark.parametrize("wrong", [{"least": 5, "most": 4}, {"least": 0}, {"most": 1001}])
def test_bounds_that_contradict_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidDeclaration):
        Workers(**wrong)
