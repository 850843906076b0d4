"""The workers of a job: the sizes that EMR Serverless offers, and what a job asks for in all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from frazil.declaration.problems import Problem
from frazil.declaration.rules import between, one_of
from frazil.declaration.validity import validate

# vCPU -> least and most memory in GB, and its step: "Supported worker configurations", EMR Serverless User Guide.
_MEMORY = {1: (2, 8, 1), 2: (4, 16, 1), 4: (8, 30, 1), 8: (16, 60, 4), 16: (32, 120, 8)}
_OVERHEAD_PERCENT = 10
_LEAST_OVERHEAD_MB = 384


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One worker, driver or executor."""

    cpu: Annotated[int, "vCPUs.", one_of(*_MEMORY)]
    memory_gb: Annotated[int, "Memory of the whole container, Spark's overhead included.", between(2, 120)]
    disk_gb: Annotated[int, "Ephemeral disk; 20 are in the price.", between(20, 200)] = 20

    def __post_init__(self) -> None:
        validate(self, self._contradictions)

    @property
    def heap_mb(self) -> int:
        """What Spark may be told to take (`spark.executor.memory`): the container less Spark's overhead."""
        whole = self.memory_gb * 1024
        return min(whole * 100 // (100 + _OVERHEAD_PERCENT), whole - _LEAST_OVERHEAD_MB)

    def _contradictions(self) -> Iterator[Problem]:
        if self.cpu not in _MEMORY:
            return
        least, most, step = _MEMORY[self.cpu]
        if not least <= self.memory_gb <= most or (self.memory_gb - least) % step:
            yield Problem(
                "memory_gb",
                f"a worker of {self.cpu} vCPU cannot have {self.memory_gb} GB",
                f"Write {least} to {most}" + (f", in steps of {step}" if step > 1 else ""),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSize:
    """What one run of a job asks for at most."""

    driver: Annotated[Worker, "The driver."]
    executor: Annotated[Worker, "Each executor."]
    executors: Annotated[int, "The most executors at once.", between(1, 1000)]

    def __post_init__(self) -> None:
        validate(self)

    @property
    def cpu(self) -> int:
        """vCPUs of the whole run."""
        return self.driver.cpu + self.executors * self.executor.cpu

    @property
    def memory_gb(self) -> int:
        """Memory of the whole run."""
        return self.driver.memory_gb + self.executors * self.executor.memory_gb

    @property
    def disk_gb(self) -> int:
        """Disk of the whole run."""
        return self.driver.disk_gb + self.executors * self.executor.disk_gb


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The most that an application may use at once, all runs together."""

    cpu: Annotated[int, "vCPUs.", between(1, 100_000)]
    memory_gb: Annotated[int, "Memory.", between(1, 1_000_000)]
    disk_gb: Annotated[int, "Disk.", between(20, 10_000_000)]

    def __post_init__(self) -> None:
        validate(self)

    def shortage(self, *jobs: JobSize) -> str:
        """Why the jobs, each running once, do not fit; empty if they do."""
        short = []
        for what, unit in (("cpu", "vCPU"), ("memory_gb", "GB of memory"), ("disk_gb", "GB of disk")):
            wanted, given = sum(getattr(job, what) for job in jobs), getattr(self, what)
            if wanted > given:
                short.append(f"{wanted} {unit} are wanted, {given} are there")
        return "; ".join(short)
