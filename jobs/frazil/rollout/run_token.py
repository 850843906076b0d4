"""The client tokens of runs: EMR Serverless starts one run for all requests with the same token."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID, uuid5

from frazil.clients.emr import Run
from frazil.rollout.desired import Desired

_NAMESPACE = UUID("5a3a3ad5-8f0e-4a0c-8a52-0d6f5d2f7c44")


def token(target: Desired, last: Run | None, now: datetime) -> str:
    """Return the client token of the run after `last`: two reconcilers with the same decision request the same run.

    Without a last run, the token depends on the day: the generation may have had runs that are no longer listed, and a
    token works once.
    """
    after = last.id if last is not None else f"{now.astimezone(UTC):%Y-%m-%d}"
    return _token(target, after)


def scheduled_token(target: Desired, execution: str) -> str:
    """Return the client token of the drain that an execution of the schedule asks for."""
    return _token(target, f"execution {execution}")


def _token(target: Desired, after: str) -> str:
    return str(uuid5(_NAMESPACE, f"{target.job} {target.digest} {after}"))
