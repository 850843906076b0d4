"""The settings of the deployed reconciler, which deployment writes and the function reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

HANDLER = "frazil.rollout.reconciler_function.handle"
"""The function of the program that the service calls."""
EXECUTION = "execution"
"""The member of an event that identifies the execution of a schedule that asks for the next drain."""
TIMEOUT_SECONDS = 300
"""The longest time that a pass may take: less than its lease, more than its calls with some attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The job that the function reconciles, and where: its environment variables."""

    job: str
    bucket: str
    metrics_namespace: str
    trusted_keys: tuple[str, ...] = ()
    silent_seconds: int | None = None
    """Seconds in which a pipeline may report nothing; None if the reconciler does not count silent ones."""

    def variables(self) -> dict[str, str]:
        """Return the environment variables of the function."""
        return {
            "FRAZIL_JOB": self.job,
            "FRAZIL_ARTIFACT_BUCKET": self.bucket,
            "FRAZIL_METRICS_NAMESPACE": self.metrics_namespace,
            **({"FRAZIL_SILENT_SECONDS": str(self.silent_seconds)} if self.silent_seconds else {}),
            **({"FRAZIL_TRUSTED_KEYS": ",".join(self.trusted_keys)} if self.trusted_keys else {}),
        }

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> Settings:
        """Return the settings of a function with these variables."""
        return cls(
            job=variables["FRAZIL_JOB"],
            bucket=variables["FRAZIL_ARTIFACT_BUCKET"],
            metrics_namespace=variables["FRAZIL_METRICS_NAMESPACE"],
            silent_seconds=int(variables.get("FRAZIL_SILENT_SECONDS", "0")) or None,
            trusted_keys=tuple(filter(None, variables.get("FRAZIL_TRUSTED_KEYS", "").split(","))),
        )
