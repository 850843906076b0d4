"""What may be JSON's null in a key or value, of which version 0.1.0 kept no bytes."""

from __future__ import annotations

import pytest

from frazil.ingest.fingerprint import is_json_null


@pytest.mark.parametrize(
    ("body", "is_null"),
    [
        (b"null", True),
        (b"\x00\x00\x00\x00\x01null \n", True),
        (b'{"payload":null}', True),
        (None, False),
        (b"nul", False),
    ],
)
def test_a_body_that_may_be_null_is_known_by_its_end(body: bytes | None, is_null: bool) -> None:
    assert is_json_null(body) is is_null
