"""The verification without native code agrees with OpenSSL's."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from frazil.release.ed25519 import is_signed

ORDER = 2**252 + 27742317777372353535851937790883648493


@pytest.mark.parametrize("number", range(8))
def test_a_signature_counts_for_its_key_and_message_only(number: int) -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)
    public, message = key.public_key().public_bytes_raw(), b"x" * number * 50
    signature = key.sign(message)
    assert is_signed(public, signature, message)
    assert not is_signed(public, signature, message + b"y")
    for at in (0, 31, 32, 63):
        changed = bytearray(signature)
        changed[at] ^= 1
        assert not is_signed(public, bytes(changed), message)
    other = Ed25519PrivateKey.from_private_bytes(bytes([number + 1]) * 32).public_key().public_bytes_raw()
    assert not is_signed(other, signature, message)


def test_what_is_no_key_or_no_signature_counts_for_nothing() -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    public, signature = key.public_key().public_bytes_raw(), key.sign(b"")
    larger = (int.from_bytes(signature[32:], "little") + ORDER).to_bytes(32, "little")
    assert is_signed(public, signature, b"")
    for wrong in (b"", signature[:-1], signature + b"0", b"\xff" * 64, signature[:32] + larger):
        assert not is_signed(public, wrong, b"")
    for wrong in (b"", b"\xff" * 32, (2).to_bytes(32, "little")):
        assert not is_signed(wrong, signature, b"")
