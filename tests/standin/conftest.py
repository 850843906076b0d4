from __future__ import annotations

import pytest

from frazil.local.services import LocalServices
from tests.standin.aws.launch import with_aws


@pytest.fixture(scope="session")
def whole_world(local_world: LocalServices) -> LocalServices:
    """Return the services of the tests, with the local AWS."""
    return with_aws(local_world)
