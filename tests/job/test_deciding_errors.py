"""The errors that decide how a deployed run ends, if a document has patterns."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from frazil.errors import FrazilError, InvalidInput
from frazil.exit_codes import Exit, exit_of_all
from frazil.job.entry_point import REFUSED, deciding

BAD = InvalidInput("a record has no schema")


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ({"own": None}, Exit.SUCCESS),
        ({"own": BAD, "a": None}, Exit.INVALID_INPUT),
        ({"own": None, "a": None, "b": BAD}, Exit.SUCCESS),
        ({"own": None, "a": BAD, "b": BAD}, Exit.INVALID_INPUT),
        ({"own": None, f"{REFUSED}shop.x": BAD}, Exit.SUCCESS),
        ({"a": BAD, f"{REFUSED}shop.x": None}, Exit.INVALID_INPUT),
    ],
)
def test_an_outsiders_topic_fails_no_run(errors: Mapping[str, FrazilError | None], code: Exit) -> None:
    assert exit_of_all(deciding(errors, ["own", "patterns[0]"])) is code
