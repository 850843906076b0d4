"""Tokens for Amazon MSK: a signed request to connect, which the broker has IAM check."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from frazil.clients.aws_login import LOGIN, unanswered
from frazil.clients.tokens import Token
from frazil.errors import TokenUnavailable

_SECONDS = 900
"""The lifetime of a signature; MSK takes none that is longer."""

_SERVICE = "kafka-cluster"


def default_credentials() -> Any:
    """Return the credentials of AWS's default chain as botocore has them, or None; boto3 is imported here only."""
    import boto3

    return boto3.session.Session().get_credentials()


class MskTokens:
    """Signs for one region, with `credentials()` of each time: roles renew theirs."""

    references = "the credentials of AWS's default chain"

    def __init__(self, region: str, *, credentials: Callable[[], Any] = default_credentials) -> None:
        self._region, self._credentials = region, credentials
        self._kept: Any = None

    def fetch(self) -> Token:
        """Return a new token. Raises `TokenUnavailable` without credentials."""
        from botocore.auth import SigV4QueryAuth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError, ClientError

        address = f"https://kafka.{self._region}.amazonaws.com/"
        request = AWSRequest(method="GET", url=address, params={"Action": f"{_SERVICE}:Connect"})
        try:
            self._kept = self._kept or self._credentials()
            frozen = self._kept.get_frozen_credentials() if self._kept is not None else None
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "without a code")
            raise TokenUnavailable(f"it refused the credentials of a role ({code})", where="AWS", do=LOGIN) from None
        except BotoCoreError as error:
            what, _ = unanswered("AWS", error)
            raise TokenUnavailable(what, where="AWS", do=LOGIN) from None
        if frozen is None:
            raise TokenUnavailable("there are no AWS credentials to sign with", where="AWS", do=LOGIN)
        SigV4QueryAuth(frozen, _SERVICE, self._region, expires=_SECONDS).add_auth(request)
        url = f"{request.url}&User-Agent=frazil"
        signed_at = parse_qs(urlsplit(url).query)["X-Amz-Date"][0]
        issued_at = datetime.strptime(signed_at, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
        return Token(base64.urlsafe_b64encode(url.encode()).decode().rstrip("="), issued_at, issued_at + _SECONDS)

    def forget(self) -> None:
        """Look the credentials up again."""
        self._kept = None
