"""The execution role of a run, whose credentials come from STS as in the service."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from frazil.clients.aws_session import aws_session

_ANY_KEY = "frazil"  # moto accepts any key and derives the account from it; this one gives the default account


class Role:
    """A role that is assumed when its credentials are first needed."""

    def __init__(self, arn: str, *, endpoint: str, region: str) -> None:
        self._arn, self._endpoint, self._region = arn, endpoint, region

    def client(self, service: str) -> Any:
        """Return a client with the role's permissions."""
        return _client(service, self._endpoint, self._region, self._credentials)

    def environment(self) -> dict[str, str]:
        """Return the environment variables of a process of the role."""
        return {
            "AWS_ENDPOINT_URL": self._endpoint,
            "AWS_REGION": self._region,
            "AWS_DEFAULT_REGION": self._region,
            "AWS_ACCESS_KEY_ID": self._credentials["aws_access_key_id"],
            "AWS_SECRET_ACCESS_KEY": self._credentials["aws_secret_access_key"],
            "AWS_SESSION_TOKEN": self._credentials["aws_session_token"],
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    @cached_property
    def _credentials(self) -> dict[str, str]:
        anyone = {"aws_access_key_id": _ANY_KEY, "aws_secret_access_key": _ANY_KEY}
        sts = _client("sts", self._endpoint, self._region, anyone)
        given = sts.assume_role(RoleArn=self._arn, RoleSessionName="emr-serverless")["Credentials"]
        return {
            "aws_access_key_id": given["AccessKeyId"],
            "aws_secret_access_key": given["SecretAccessKey"],
            "aws_session_token": given["SessionToken"],
        }


def _client(service: str, endpoint: str, region: str, keys: Mapping[str, str]) -> Any:
    from botocore.config import Config

    patience = Config(
        connect_timeout=5,
        read_timeout=60,
        retries={"mode": "standard", "total_max_attempts": 3},
        s3={"addressing_style": "path"},
    )
    return aws_session().client(service, endpoint_url=endpoint, region_name=region, config=patience, **keys)
