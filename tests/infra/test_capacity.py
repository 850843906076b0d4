"""Whether jobs fit into an application."""

from frazil.rollout.desired import Worker, Workers
from infra.capacity import Capacity
from tests.declaration.problems_of import problems_of

ONE = Workers(
    driver=Worker(cores=1, memory_gb=4, disk_gb=20), executor=Worker(cores=2, memory_gb=8, disk_gb=30), least=1, most=3
)


def test_jobs_that_just_fit_fit() -> None:
    assert Capacity(cores=7, memory_gb=28, disk_gb=110).shortage(ONE) == ""


def test_jobs_run_at_the_same_time() -> None:
    assert Capacity(cores=14, memory_gb=56, disk_gb=220).shortage(ONE, ONE) == ""
    assert Capacity(cores=13, memory_gb=56, disk_gb=220).shortage(ONE, ONE) == "14 vCPU needed, 13 available"


def test_everything_that_is_short_is_told_at_once() -> None:
    told = Capacity(cores=6, memory_gb=27, disk_gb=109).shortage(ONE)
    assert (
        told == "7 vCPU needed, 6 available; 28 GB of memory needed, 27 available; 110 GB of disk needed, 109 available"
    )


def test_a_capacity_of_nothing_is_refused() -> None:
    assert set(problems_of(lambda: Capacity(cores=0, memory_gb=0, disk_gb=0))) == {
        "capacity.cores",
        "capacity.memory_gb",
        "capacity.disk_gb",
    }
