"""Explain why an AWS service was not reached: without credentials nothing was asked at all."""

from __future__ import annotations

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
