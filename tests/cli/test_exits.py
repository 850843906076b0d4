"""Exit codes mean the same in every command."""

from __future__ import annotations

import pytest

from frazil import errors
from frazil.cli.exits import Exit, exit_of
from frazil.declaration import InvalidDeclaration


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidDeclaration([]), Exit.WRONG),
        (errors.FrazilError("no such pipeline"), Exit.WRONG),
        (errors.KafkaUnavailable("silent"), Exit.UNAVAILABLE),
        (errors.RegistryUnavailable("silent"), Exit.UNAVAILABLE),
        (errors.SecretUnavailable("unset"), Exit.UNAVAILABLE),
        (errors.EmrUnavailable("silent"), Exit.UNAVAILABLE),
        (errors.LeaseHeld("another one"), Exit.UNAVAILABLE),
        (errors.NothingRuns("all failed"), Exit.REFUSED),
        (errors.ReleaseIncomplete("no wheel"), Exit.REFUSED),
        (errors.TopicRecreated("another id"), Exit.REFUSED),
        (errors.FenceUnproven("both committed"), Exit.REFUSED),
        (errors.IncompatibleSchema("int to string"), Exit.REFUSED),
    ],
)
def test_an_error_has_its_exit_code(error: errors.FrazilError, code: Exit) -> None:
    assert exit_of(error) is code
