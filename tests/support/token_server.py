"""A token endpoint over TLS, as a thread: client credentials against JWTs that are signed with RS256."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote_plus

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.support.local_server import LocalServer, QuietHandler

ISSUER, AUDIENCE = "https://issuer.test", "frazil"
CLIENT = "client-0815"
CLIENT_SECRET = 'cl!ent/s3cret+"q\\ö~ 4713'
"""Every character that has a meaning somewhere on the way."""


def make_signing_key(folder: Path) -> None:
    """Write the key that signs tokens, and the set of public keys (RFC 7517) by which a broker verifies them."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    numbers = key.public_key().public_numbers()
    form = serialization.PrivateFormat.PKCS8
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    (folder / "signing.pem").write_bytes(pem)
    public = {"kty": "RSA", "kid": "k1", "use": "sig", "alg": "RS256", "n": _number(numbers.n), "e": _number(numbers.e)}
    (folder / "jwks.json").write_text(json.dumps({"keys": [public]}))


class TokenServer(LocalServer):
    """Serves `url` while its `with` block runs. `folder` has `signing.pem`, and `server.crt` and `server.key` for TLS.

    Tokens live `seconds`. `requests` are the forms that were sent; `tokens` what was given; `always` is a status and a body for
    every request.
    """

    def __init__(self, folder: Path, *, seconds: int = 3600) -> None:
        super().__init__(_Handler)
        self.secure(folder / "server.crt", folder / "server.key")
        key = serialization.load_pem_private_key((folder / "signing.pem").read_bytes(), None)
        assert isinstance(key, rsa.RSAPrivateKey)
        self._key = key
        self.seconds, self.secret, self.issuer = seconds, CLIENT_SECRET, ISSUER
        self.always: tuple[int, bytes] | None = None
        self.requests: list[dict[str, list[str]]] = []
        self.tokens: list[str] = []

    @property
    def url(self) -> str:
        return f"{self.address}/oauth2/token"

    def token(self, now: float) -> str:
        ends = int(now) + 1 + self.seconds  # claims are full seconds, and a token must not end before it is said to
        claims = {"iss": self.issuer, "aud": AUDIENCE, "sub": CLIENT, "iat": int(now), "exp": ends}
        signed = (
            f"{_json({'alg': 'RS256', 'typ': 'JWT', 'kid': 'k1'})}.{_json({**claims, 'jti': str(len(self.tokens))})}"
        )
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        self.tokens.append(f"{signed}.{_base64(signature)}")
        return self.tokens[-1]


class _Handler(QuietHandler):
    server: TokenServer

    def do_POST(self) -> None:  # noqa: N802 - http.server's name
        endpoint, form = self.server, parse_qs(self.body().decode())
        endpoint.requests.append(form)
        if endpoint.always is not None:
            return self.answer(*endpoint.always)
        word = (self.headers.get("Authorization") or "").removeprefix("Basic ")
        sent = [unquote_plus(part) for part in base64.b64decode(word).decode().split(":")]
        if sent != [CLIENT, endpoint.secret] or form.get("grant_type") != ["client_credentials"]:
            return self.answer(401, b'{"error": "invalid_client"}')
        answer = {"access_token": endpoint.token(time.time()), "expires_in": endpoint.seconds, "token_type": "Bearer"}
        return self.answer(200, json.dumps(answer).encode())


def _json(value: dict[str, Any]) -> str:
    return _base64(json.dumps(value).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _number(value: int) -> str:
    return _base64(value.to_bytes((value.bit_length() + 7) // 8))
