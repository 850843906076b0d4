"""Sessions of boto3 that share the descriptions of services: botocore parses megabytes of JSON for a client of S3."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

ATTEMPTS = 5
LOGIN = "Log in to AWS, for example with `aws sso login`, or set AWS_PROFILE"

_NO_CREDENTIALS = {
    "NoCredentialsError",
    "PartialCredentialsError",
    "CredentialRetrievalError",
    "TokenRetrievalError",
    "SSOTokenLoadError",
    "UnauthorizedSSOTokenError",
    "LoginRefreshRequired",
}


def unanswered(service: str, error: Exception) -> tuple[str, str]:
    """Return what happened, and what to do, for an error of botocore that is no answer of the service."""
    if type(error).__name__ in _NO_CREDENTIALS:
        return f"there are no valid AWS credentials ({type(error).__name__})", LOGIN
    return f"{service} did not answer ({type(error).__name__})", "Try again"


def aws_session(*keys: str, region: str | None = None) -> Any:
    """Return a new session of boto3, with the settings that the shell has now. boto3 is slow to import, so it is imported here.

    `keys` are an access key with its secret, and the token of a session. AWS's default chain decides what is not given. Folders
    of descriptions that the shell adds (`AWS_DATA_PATH`) are those of the process's first session.
    """
    import boto3
    import botocore.session

    made = botocore.session.get_session()
    made.register_component("data_loader", _descriptions())
    return boto3.session.Session(*keys, region_name=region, botocore_session=made)


def aws_client(
    service: str,
    session: Any = None,
    *,
    connect_seconds: float = 5,
    answer_seconds: float = 20,
    attempts: int = ATTEMPTS,
    s3: Mapping[str, str] | None = None,
    **place: str | None,
) -> Any:
    """Return boto3's client of a service. `place` are region, endpoint and keys by boto3's names, `s3` settings for S3."""
    from botocore.config import Config

    retries = {"mode": "standard", "total_max_attempts": attempts}
    config = Config(connect_timeout=connect_seconds, read_timeout=answer_seconds, retries=retries, s3=s3)
    return (session or aws_session()).client(service, config=config, **place)


@cache
def _descriptions() -> Any:
    import botocore.session

    return botocore.session.get_session().get_component("data_loader")
