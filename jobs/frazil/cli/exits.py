"""What a command's exit code means; the same for every command."""

from __future__ import annotations

from enum import IntEnum

from frazil import errors
from frazil.declaration.problems import InvalidDeclaration


class Exit(IntEnum):
    """Exit codes, public: scripts rely on them.

    `DONE`: all is well; a run that another driver fenced is well too. `REFUSED`: a pipeline waits for a person, or a
    proof did not hold. `WRONG`: the command line, a declaration or an environment document is not right, and nothing
    was begun.
    `UNAVAILABLE`: a service, a secret or something that this machine must have is not there; trying again may help.
    `BROKEN`: a fault of Frazil's own. `INTERRUPTED`: stopped from the keyboard.
    """

    DONE = 0
    REFUSED = 1
    WRONG = 2
    UNAVAILABLE = 3
    BROKEN = 70
    INTERRUPTED = 130


HELP = "Exit codes: 0 done, 1 refused (a person must decide), 2 wrong input, 3 unavailable, 70 a fault of Frazil's."

_UNAVAILABLE = (
    errors.ServiceUnavailable,
    errors.LeaseHeld,
    errors.LocalPartFailed,
    errors.JavaUnsuitable,
    errors.JarsUnavailable,
    errors.JarMismatch,
)


def exit_of(error: errors.FrazilError) -> Exit:
    """The exit code that an error ends a command with."""
    if isinstance(error, _UNAVAILABLE):
        return Exit.UNAVAILABLE
    if isinstance(error, InvalidDeclaration) or type(error) is errors.FrazilError:
        return Exit.WRONG
    return Exit.REFUSED
