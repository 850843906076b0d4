from collections.abc import Iterator

import pytest

from frazil.local.services import LocalServices, Part, world


@pytest.fixture(scope="session")
def whole_world() -> Iterator[LocalServices]:
    """One world with every part, for all tests that only look or that use names of their own."""
    with world(parts=tuple(Part), compatibility="BACKWARD") as up:
        yield up
