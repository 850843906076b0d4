from collections.abc import Iterator

import pytest

from frazil.local.services import Part, World, world


@pytest.fixture(scope="session")
def whole_world() -> Iterator[World]:
    """One world with every part, for all tests that only look or that use names of their own."""
    with world(parts=tuple(Part), compatibility="BACKWARD") as up:
        yield up
