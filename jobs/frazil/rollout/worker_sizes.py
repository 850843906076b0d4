"""The sizes of a job's workers that EMR Serverless offers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from frazil.declaration.checks.constraints import between, one_of
from frazil.declaration.checks.problems import Problem
from frazil.declaration.checks.validation import validate

MEMORY_GB: Mapping[int, range] = {
    1: range(2, 9),
    2: range(4, 17),
    4: range(8, 31),
    8: range(16, 61, 4),
    16: range(32, 121, 8),
}
"""The memory sizes in GB that are offered for each number of cores
(https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-behavior.html#worker-configs)."""

_OVERHEAD_LEAST_MB = 384
_OVERHEAD_PERCENT = (
    20  # for Python, Arrow and native memory beside the heap; Spark's default of 10 is for the JVM alone
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """The size of one worker: a driver or an executor."""

    cores: Annotated[int, "vCPUs.", one_of(*MEMORY_GB)] = 4
    memory_gb: Annotated[int, "The worker's memory, heap and overhead, in GB.", between(2, 120)] = 16
    disk_gb: Annotated[int, "Disk, in GB.", between(20, 200)] = 20

    def __post_init__(self) -> None:
        validate(self, self._contradictions)

    def _contradictions(self) -> Iterator[Problem]:
        sold = MEMORY_GB.get(self.cores, range(0))
        if sold and self.memory_gb not in sold:
            step = f" in steps of {sold.step}" if sold.step > 1 else ""
            do = f"Write {sold[0]} to {sold[-1]}{step}, or another number of cores"
            yield Problem("memory_gb", f"{self.cores} cores are not offered with {self.memory_gb} GB", do)

    @property
    def overhead_mb(self) -> int:
        """The memory outside the JVM's heap, in MB."""
        return max(_OVERHEAD_LEAST_MB, self.memory_gb * 1024 * _OVERHEAD_PERCENT // 100)

    @property
    def heap_mb(self) -> int:
        """The JVM's heap in MB. Heap and overhead are exactly the worker's memory."""
        return self.memory_gb * 1024 - self.overhead_mb


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """A driver, and executors whose number follows the work."""

    driver: Annotated[Worker, "The driver."] = Worker()  # frozen
    executor: Annotated[Worker, "Each executor."] = Worker()  # frozen
    least: Annotated[int, "The fewest executors.", between(1, 1000)] = 1
    most: Annotated[int, "The most executors.", between(1, 1000)] = 4

    def __post_init__(self) -> None:
        validate(self, self._contradictions)

    def _contradictions(self) -> Iterator[Problem]:
        if self.least > self.most:
            yield Problem("least", f"it is more than `most`, {self.most}", "Lower it, or raise `most`")

    @property
    def most_cores(self) -> int:
        """The most vCPUs, the driver's included. An application's maximum capacity must not be smaller."""
        return self.driver.cores + self.most * self.executor.cores

    @property
    def most_memory_gb(self) -> int:
        """The most memory, the driver's included, in GB."""
        return self.driver.memory_gb + self.most * self.executor.memory_gb
