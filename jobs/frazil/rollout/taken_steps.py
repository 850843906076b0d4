"""What the steps of a reconciler store, and which ones it cannot or need not take."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.errors import RolloutFailed
from frazil.rollout.state import RolloutState
from frazil.rollout.steps import Cancel, Forget, GiveUp, Halt, Leave, Prove, Start, Step, Wait


def stored(state: RolloutState, step: Step) -> RolloutState:
    """Return the state that is written when a step is taken."""
    match step:
        case Start():
            return state.with_application(step.desired.application)
        case Prove():
            return state.with_proven(step.desired)
        case GiveUp():
            return state.with_given_up(step.desired)
        case Forget():
            return state.without_application(step.application)
        case _:
            return state


def refuse_halt(step: Step, job: str) -> None:
    """Raise `RolloutFailed` if a step is that an operator must decide."""
    if isinstance(step, Halt):
        do = "Read its logs, fix the cause, and raise the generation"
        raise RolloutFailed(step.why, where=f"job {job}", do=do)


def needs_time(steps: Sequence[Step]) -> bool:
    """Return whether steps take effect only after a while, so that there is nothing to decide at once."""
    return any(isinstance(step, Wait | Cancel | Start | Leave) for step in steps)
