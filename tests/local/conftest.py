from collections.abc import Iterator

import pytest

from frazil.local.services import CHANGE_DATA, LocalServices, Part, world
from tests.standin.aws.launch import with_aws

SESSION_PARTS = tuple(part for part in Part if part not in CHANGE_DATA)
"""The parts of the world. Those of change data need ten seconds, and have long tests of their own."""


@pytest.fixture(scope="package")
def whole_world() -> Iterator[LocalServices]:
    """One world with these parts, for all tests that only look or that use names of their own. It ends with the last of them."""
    with world(parts=SESSION_PARTS, compatibility="BACKWARD") as up:
        yield with_aws(up)
