"""A release is used if a trusted key signed its manifest, and unsigned only if no key is trusted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.errors import InvalidInput, ReleaseIncomplete, ReleaseUntrusted
from frazil.release.manifest import Architecture, Release, manifest
from frazil.release.signature import in_folder, key_id, sign, signature_key, signature_name, verify
from frazil.release.upload import upload_release
from stacks.workflow import app as synthesis
from tests.stacks.synthesised import release as unbuilt
from tests.support import small_release
from tests.support.fake_store import FakeStore

RELEASE = unbuilt(Architecture.ARM64)


def pem(key: Ed25519PrivateKey | RSAPrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


ONE, OTHER = (Ed25519PrivateKey.from_private_bytes(bytes([n] * 32)) for n in (1, 2))
PUBLIC, PUBLIC_OTHER = (key.public_key().public_bytes_raw().hex() for key in (ONE, OTHER))


def verified(release: Release, trusted: tuple[str, ...], *signatures: bytes | None) -> bool:
    found = iter(signatures)
    try:
        verify(release, trusted, lambda key: next(found, None))
    except ReleaseUntrusted:
        return False
    return True


def test_the_signature_is_ed25519_as_rfc_8032_defines_it() -> None:
    """Test 1 of section 7.1: the key is that of the RFC. The public key is what a declaration trusts."""
    seed = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    public, content = sign(RELEASE, pem(Ed25519PrivateKey.from_private_bytes(seed)))
    assert public == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    assert verified(RELEASE, (public,), content)


def test_a_signed_release_is_trusted_by_its_key_only() -> None:
    public, content = sign(RELEASE, pem(ONE))
    assert public == PUBLIC
    assert verified(RELEASE, (PUBLIC,), content)
    assert not verified(RELEASE, (PUBLIC_OTHER,), content)
    assert not verified(RELEASE, (PUBLIC,), None)
    assert verified(RELEASE, ()), "without trusted keys, an unsigned one is allowed"


def test_a_changed_release_or_signature_is_not_trusted() -> None:
    _, content = sign(RELEASE, pem(ONE))
    assert not verified(replace(RELEASE, version="1.0.1"), (PUBLIC,), content)
    files = (replace(RELEASE.files[0], sha256="f" * 64), *RELEASE.files[1:])
    assert not verified(replace(RELEASE, files=files), (PUBLIC,), content)
    broken = json.loads(content)
    for signature in ("", "00" * 64, broken["signature"][:-2], broken["signature"].replace("a", "b"), 1, None, "zz"):
        assert not verified(RELEASE, (PUBLIC,), json.dumps({**broken, "signature": signature}).encode())
    for text in (b"", b"{}", b"[]", b"no JSON", b"\xff"):
        assert not verified(RELEASE, (PUBLIC,), text)


def test_the_key_that_a_signature_names_is_not_believed() -> None:
    _, content = sign(RELEASE, pem(OTHER))
    claimed = {**json.loads(content), "key": PUBLIC}
    assert not verified(RELEASE, (PUBLIC,), json.dumps(claimed).encode())


def test_a_signature_of_the_bare_manifest_is_none() -> None:
    """Else whoever gets a key to sign some bytes could sign a release."""
    signature = ONE.sign(manifest(RELEASE)).hex()
    assert not verified(RELEASE, (PUBLIC,), json.dumps({"signature": signature}).encode())


def test_a_key_is_replaced_by_trusting_both_for_a_time() -> None:
    _, old = sign(RELEASE, pem(ONE))
    _, new = sign(RELEASE, pem(OTHER))
    both = (PUBLIC, PUBLIC_OTHER)
    assert verified(RELEASE, both, old, None)
    assert verified(RELEASE, both, None, new)
    assert not verified(RELEASE, (PUBLIC_OTHER,), old)
    assert signature_key(RELEASE, PUBLIC) != signature_key(RELEASE, PUBLIC_OTHER), "both may be stored"


def test_another_key_signs_nothing() -> None:
    rsa = generate_private_key(public_exponent=65537, key_size=2048)
    for key in (b"", b"no key", pem(ONE)[:40], pem(rsa)):
        with pytest.raises(InvalidInput, match="no Ed25519 key"):
            sign(RELEASE, key)


# ── Where it is verified ────────────────────────────────────────────────────────────────────────
@pytest.fixture
def folder(root: Path, own_wheel: Path, tmp_path: Path) -> Path:
    small_release.built(root, own_wheel, tmp_path, tmp_path / "out")
    return tmp_path / "out"


def signed(folder: Path, tmp_path: Path) -> str:
    (tmp_path / "key.pem").write_bytes(pem(ONE))
    ended = CliRunner().invoke(app, ["release", "sign", "--from", str(folder), "--key-file", str(tmp_path / "key.pem")])
    assert ended.exit_code == 0, ended.stderr
    return ended.stdout


def test_an_upload_needs_the_signature_and_stores_it_before_the_manifest(folder: Path, tmp_path: Path) -> None:
    store = FakeStore()
    with pytest.raises(ReleaseUntrusted, match=key_id(PUBLIC)):
        upload_release(folder, store, trusted=(PUBLIC,))
    assert store.objects == {}
    assert signed(folder, tmp_path) == f"signed with the key {PUBLIC}\n"
    release, uploaded = upload_release(folder, store, trusted=(PUBLIC,))
    assert list(uploaded)[-2:] == [signature_key(release, PUBLIC), release.key]
    verify(release, (PUBLIC,), lambda key: store.objects[signature_key(release, key)].data)


def test_a_changed_file_is_not_signed(folder: Path, tmp_path: Path) -> None:
    (folder / "ingest.py").write_text("evil")
    (tmp_path / "key.pem").write_bytes(pem(ONE))
    ended = CliRunner().invoke(app, ["release", "sign", "--from", str(folder), "--key-file", str(tmp_path / "key.pem")])
    assert (ended.exit_code, list(folder.glob("signature-*"))) == (1, [])
    assert CliRunner().invoke(app, ["release", "sign", "--from", str(folder)]).exit_code == 2
    with pytest.raises(ReleaseIncomplete):
        upload_release(folder, FakeStore())


def test_synthesis_refuses_a_release_that_no_trusted_key_has_signed(tmp_path: Path) -> None:
    file = tmp_path / "manifest.json"
    file.write_bytes(manifest(RELEASE))
    assert synthesis._release(str(file), ()) == RELEASE
    with pytest.raises(ReleaseUntrusted):
        synthesis._release(str(file), (PUBLIC,))
    _, content = sign(RELEASE, pem(ONE))
    (tmp_path / signature_name(PUBLIC)).write_bytes(content)
    assert synthesis._release(str(file), (PUBLIC,)) == RELEASE
    assert in_folder(tmp_path)(PUBLIC_OTHER) is None
