"""Signatures of releases with Ed25519: a key signs the manifest, which has the hash of each file.

Whoever uses a release verifies it by trusted public keys. They come from the deployment, never from the release. Several keys
may be trusted, so that one can replace another. Without trusted keys, unsigned releases are allowed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from frazil.errors import InvalidInput, ReleaseUntrusted
from frazil.release.manifest import Release, manifest

SIGNATURES = "signature-*.json"
"""The files of signatures next to a manifest."""
_CONTEXT = b"frazil release manifest, version 1\n"
"""The bytes before the signed ones: a signature of something else by the same key signs no release."""


def key_id(public_key: str) -> str:
    """Return the short name of a public key: the beginning of its SHA-256."""
    return hashlib.sha256(bytes.fromhex(public_key)).hexdigest()[:16]


def signature_name(public_key: str) -> str:
    """Return the name of the file with the signature by a key."""
    return f"signature-{key_id(public_key)}.json"


def signature_key(release: Release, public_key: str) -> str:
    """Return the key of the signature in the artifact bucket, next to the manifest."""
    return f"{release.key.rpartition('/')[0]}/{signature_name(public_key)}"


def sign(release: Release, private_key: bytes) -> tuple[str, bytes]:
    """Sign a release. Return the public key, and the content of the signature's file.

    `private_key` is PEM (PKCS #8) without a password. Raises `InvalidInput` for another key than of Ed25519.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(private_key, password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        do = "Create one with `openssl genpkey -algorithm ed25519`"
        raise InvalidInput("it is no Ed25519 key in PEM without a password", where="the private key", do=do)
    public = key.public_key().public_bytes_raw().hex()
    signature = key.sign(_CONTEXT + manifest(release)).hex()
    content = {"version": 1, "key": public, "release": release.digest, "signature": signature}
    return public, json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def verify(release: Release, trusted: Sequence[str], read: Callable[[str], bytes | None]) -> None:
    """Verify a release. `read` returns the file of the signature by a public key; None if it does not exist.

    Does nothing without trusted keys. Raises `ReleaseUntrusted` if no trusted key has signed the release.
    """
    if not trusted or any(_is_signed(release, key, read(key)) for key in trusted):
        return
    keys = ", ".join(map(key_id, trusted))
    raise ReleaseUntrusted(
        f"no trusted key has signed it ({keys})",
        where=release.key,
        do="Sign it with `frazil release sign`, then upload it",
    )


def in_folder(folder: Path) -> Callable[[str], bytes | None]:
    """Return a reader of the signatures next to a manifest."""

    def read(public_key: str) -> bytes | None:
        file = folder / signature_name(public_key)
        return file.read_bytes() if file.is_file() else None

    return read


def _is_signed(release: Release, public_key: str, content: bytes | None) -> bool:
    """Return whether a file holds a signature of this release by this key. The key in the file is for people only."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        signature = bytes.fromhex(json.loads(content or b"{}")["signature"])
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        key.verify(signature, _CONTEXT + manifest(release))
    except (InvalidSignature, ValueError, TypeError, KeyError):
        return False
    return True
