"""The token for Amazon MSK: a request that IAM can verify, checked by a signature that is computed here by AWS's description."""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from frazil.clients.msk_tokens import MskTokens
from frazil.errors import TokenUnavailable

KEY, SECRET, SESSION = "AKIDEXAMPLE", "planted/secret+key", "planted//session=="
REGION = "eu-central-1"


def url_of(token: str) -> str:
    """Return what a broker reads of a token: base64 for URLs, without padding."""
    assert "=" not in token
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()


def signature(host: str, query: dict[str, str], secret: str) -> str:
    """Sign as https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html describes it."""
    named = {name: value for name, value in query.items() if name not in ("X-Amz-Signature", "User-Agent")}
    text = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in sorted(named.items()))
    asked = f"GET\n/\n{text}\nhost:{host}\n\nhost\n{hashlib.sha256(b'').hexdigest()}"
    _, scope = query["X-Amz-Credential"].split("/", 1)
    signed = f"AWS4-HMAC-SHA256\n{query['X-Amz-Date']}\n{scope}\n{hashlib.sha256(asked.encode()).hexdigest()}"
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, signed.encode(), hashlib.sha256).hexdigest()


def tokens(*credentials: Any) -> MskTokens:
    left = list(credentials)
    return MskTokens(REGION, credentials=lambda: left.pop(0))


@pytest.mark.parametrize("session", [None, SESSION])
def test_the_token_is_a_request_to_connect_that_iam_can_verify(session: str | None) -> None:
    token = tokens(Credentials(KEY, SECRET, session)).fetch()
    address = urlsplit(url_of(token.value))
    query = dict(parse_qsl(address.query, strict_parsing=True))
    assert (address.scheme, address.netloc, address.path) == ("https", f"kafka.{REGION}.amazonaws.com", "/")
    assert query["X-Amz-Signature"] == signature(address.netloc, query, SECRET)
    assert query["X-Amz-Signature"] != signature(address.netloc, query, "another")
    day = query["X-Amz-Date"][:8]
    assert query["X-Amz-Credential"] == f"{KEY}/{day}/{REGION}/kafka-cluster/aws4_request"
    named = (query["Action"], query["X-Amz-Expires"], query["X-Amz-SignedHeaders"], query.get("X-Amz-Security-Token"))
    assert named == ("kafka-cluster:Connect", "900", "host", session)


def test_the_token_ends_when_its_signature_does() -> None:
    token = tokens(Credentials(KEY, SECRET)).fetch()
    signed = dict(parse_qsl(urlsplit(url_of(token.value)).query))["X-Amz-Date"]
    assert token.issued_at == datetime.strptime(f"{signed}+0000", "%Y%m%dT%H%M%SZ%z").timestamp()
    assert token.expires_at - token.issued_at == 900


def test_no_secret_is_in_a_token_or_its_repr() -> None:
    token = tokens(Credentials(KEY, SECRET, SESSION)).fetch()
    assert SECRET not in url_of(token.value)
    assert token.value not in repr(token)


def test_without_credentials_no_token_is_made() -> None:
    with pytest.raises(TokenUnavailable, match=r"AWS: there are no AWS credentials to sign with\. Log in"):
        tokens(None).fetch()


def test_a_role_that_is_refused_is_an_outage_of_its_own() -> None:
    """STS answers with another class of errors than botocore's own."""

    class Role:
        def get_frozen_credentials(self) -> None:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": SECRET}}, "AssumeRole")

    with pytest.raises(TokenUnavailable, match=r"AWS: it refused the credentials of a role \(AccessDenied\)") as raised:
        MskTokens(REGION, credentials=Role).fetch()
    assert SECRET not in str(raised.value)


def test_forgotten_credentials_are_looked_up_again() -> None:
    source = tokens(Credentials("FIRST", SECRET), Credentials("SECOND", SECRET))
    keys = []
    for _ in range(3):
        keys.append(dict(parse_qsl(urlsplit(url_of(source.fetch().value)).query))["X-Amz-Credential"].split("/")[0])
        if len(keys) == 2:
            source.forget()
    assert keys == ["FIRST", "FIRST", "SECOND"]
