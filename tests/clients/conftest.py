"""The local parts that the clients' end-to-end tests ask: one broker and one registry for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from frazil.local.world import World, world


@pytest.fixture(scope="package")
def local_world() -> Iterator[World]:
    with world() as running:
        yield running
