"""Exit codes: what the end of a process means. One list for the command line, the jobs and the checks of deployments."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from frazil import errors


class Exit(IntEnum):
    """Exit codes, public: scripts rely on them. Each has one meaning, in every command and every job.

    `SUCCESS`: all that was asked for is done, or another driver does it. `DECISION_REQUIRED`: an operator must decide, or a
    proof or a guardrail does not hold. `INVALID_INPUT`: the command line, a declaration, a document or a setting is wrong; a new
    attempt changes nothing. `SERVICE_UNAVAILABLE`: a service, a secret or a part of this machine is not available; a new attempt
    may succeed. `CHANGES`: a review has changes, or what runs is not what is wanted; nothing was changed. `UNCHECKED`: the
    check could not be made, so its result is not known. `FAILED`: a pipeline, a job or an action failed. `FAULT`: a defect of
    Frazil. `INTERRUPTED`: stopped from the keyboard.
    """

    SUCCESS = 0
    DECISION_REQUIRED = 1
    INVALID_INPUT = 2
    SERVICE_UNAVAILABLE = 3
    CHANGES = 4
    UNCHECKED = 5
    FAILED = 6
    FAULT = 70
    INTERRUPTED = 130


HELP_TEXT = """\b
    Exit codes:
      0 success
      1 decision required, or a proof does not hold
      2 invalid input
      3 service unavailable
      4 changes found
      5 not checked
      6 failed
      70 defect of Frazil
      130 interrupted
"""

_DECISION = (
    errors.DecisionRequired,
    errors.FenceUnproven,
    errors.JarMismatch,
    errors.LedgerTooNew,
    errors.RolloutFailed,
    errors.ObjectDiffers,
    errors.ReleaseIncomplete,
    errors.ReleaseUntrusted,
    errors.RowsWouldChange,
    errors.RuntimeDiffers,
)
_UNAVAILABLE = (
    errors.ServiceUnavailable,
    errors.LockHeld,
    errors.LocalPartFailed,
    errors.JavaUnsuitable,
    errors.JarsUnavailable,
)
# What a person must act on comes before what passes by itself.
_WORST_FIRST = (
    Exit.FAULT,
    Exit.DECISION_REQUIRED,
    Exit.INVALID_INPUT,
    Exit.FAILED,
    Exit.SERVICE_UNAVAILABLE,
    Exit.UNCHECKED,
)


def exit_of(error: BaseException) -> Exit:
    """Return the exit code of a process that this error ends. An error without a class of its own is a defect."""
    if isinstance(error, errors.InvalidInput):
        return Exit.INVALID_INPUT
    if isinstance(error, _UNAVAILABLE):
        return Exit.SERVICE_UNAVAILABLE
    if isinstance(error, _DECISION):
        return Exit.DECISION_REQUIRED
    if (
        isinstance(error, errors.Fault)
        or type(error) is errors.FrazilError
        or not isinstance(error, errors.FrazilError)
    ):
        return Exit.FAULT
    return Exit.FAILED


def exit_of_all(ended: Iterable[BaseException | None]) -> Exit:
    """Return the exit code of a process whose parts ended with these errors; `SUCCESS` without any."""
    return worst(exit_of(error) for error in ended if error is not None)


def worst(codes: Iterable[Exit]) -> Exit:
    """Return the code of a process whose parts have these codes; `SUCCESS` without any."""
    found = set(codes)
    return next((code for code in _WORST_FIRST if code in found), Exit.SUCCESS)
