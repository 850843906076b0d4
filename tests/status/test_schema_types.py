"""What the registry says of the schemas that records name, for guesses of their formats."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.clients.kafka_records import Record
from frazil.errors import RegistryUnavailable, SecretUnavailable, ServiceUnavailable, TokenUnavailable
from frazil.status.topic_listing import schema_types

FRAMED = Record(0, 0, None, b"\x00\x00\x00\x00\x07body", 0, 0, ())


@pytest.mark.parametrize("error", [RegistryUnavailable("x"), TokenUnavailable("x"), SecretUnavailable("x")], ids=repr)
def test_a_registry_or_login_that_fails_is_said_and_ends_no_listing(error: ServiceUnavailable) -> None:
    class Away:
        def prefetch(self, ids: list[int]) -> None:
            assert ids == [7]
            raise error

    away: Any = Away()
    assert schema_types([FRAMED], away) == ({}, error)
