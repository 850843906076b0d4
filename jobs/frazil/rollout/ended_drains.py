"""What the ended drains of an unproven generation show about it.

EMR Serverless ends a run that exceeds its timeout as it ends one that an operator cancels: its state is `CANCELLED`. Only the
time that it lasted distinguishes them.
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/job-states.html
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from frazil.clients.emr import Run, RunState
from frazil.rollout.desired import Desired
from frazil.rollout.readiness import Readiness


def has_timed_out(run: Run, desired: Desired) -> bool:
    """Return whether the timeout of a drain ended a run: it lasted so long, without the time in which it was queued."""
    lasted = run.updated_at - run.created_at - run.queued_for
    return run.state is RunState.CANCELLED and lasted >= timedelta(minutes=desired.timeout_minutes)


def is_proof(last: Run, desired: Desired, readiness: Readiness) -> bool:
    """Return whether the last drain proves its generation.

    A successful one has completed all its pipelines, unless its proof says that none has committed and one lacks records. If the
    timeout ended it, each pipeline must have committed or caught up.
    """
    if last.state is RunState.SUCCESS:
        return readiness is not Readiness.NOTHING_YET
    return has_timed_out(last, desired) and readiness in (Readiness.COMMITTED, Readiness.CAUGHT_UP)


def lacked_services(last: Run, desired: Desired, readiness: Readiness) -> bool:
    """Return whether the last drain did not succeed, and nothing but unavailable services explains that."""
    is_unsuccessful = last.state is RunState.FAILED or has_timed_out(last, desired)
    return is_unsuccessful and readiness in (Readiness.UNKNOWN, Readiness.PARTLY)


def failures(ended: Iterable[Run], desired: Desired, readiness: Readiness) -> list[Run]:
    """Return the drains that are evidence against their generation, given its readiness.

    A drain that its timeout ended is none if the generation makes progress. One that an operator cancelled is never evidence.
    """
    lands_nothing = readiness is Readiness.NOTHING_YET
    has_hung = lands_nothing or readiness is Readiness.STUCK
    return [
        run
        for run in ended
        if run.state is RunState.FAILED
        or (run.state is RunState.SUCCESS and lands_nothing)
        or (has_timed_out(run, desired) and has_hung)
    ]
