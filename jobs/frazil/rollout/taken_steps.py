"""What a reconciler does with steps that it cannot or need not take."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.errors import RolloutFailed
from frazil.rollout.steps import Cancel, Halt, Leave, Start, Step, Wait


def refuse_halt(step: Step, job: str) -> None:
    """Raise `RolloutFailed` if a step is that an operator must decide."""
    if isinstance(step, Halt):
        do = "Read its logs, fix the cause, and raise the generation"
        raise RolloutFailed(step.why, where=f"job {job}", do=do)


def needs_time(steps: Sequence[Step]) -> bool:
    """Return whether steps take effect only after a while, so that there is nothing to decide at once."""
    return any(isinstance(step, Wait | Cancel | Start | Leave) for step in steps)
