"""The most that an application may use at once, and whether its jobs fit."""

from __future__ import annotations

from typing import Annotated

from frazil.declaration.checks.constraints import between
from frazil.declaration.checks.declared import declared
from frazil.rollout.desired import Workers


@declared
class Capacity:
    """The bounds of one application, all runs together."""

    cores: Annotated[int, "vCPUs.", between(1, 100_000)]
    memory_gb: Annotated[int, "Memory.", between(1, 1_000_000)]
    disk_gb: Annotated[int, "Disk.", between(20, 10_000_000)]

    def shortage(self, *jobs: Workers) -> str:
        """Return why the jobs, each running once, do not fit; empty if they do."""
        wanted = {
            "vCPU": (sum(job.most_cores for job in jobs), self.cores),
            "GB of memory": (sum(job.most_memory_gb for job in jobs), self.memory_gb),
            "GB of disk": (sum(job.driver.disk_gb + job.most * job.executor.disk_gb for job in jobs), self.disk_gb),
        }
        short = [f"{need} {unit} needed, {given} available" for unit, (need, given) in wanted.items() if need > given]
        return "; ".join(short)
