"""Sessions of boto3 that share the descriptions of services: botocore parses megabytes of JSON for a client of S3."""

from __future__ import annotations

from functools import cache
from typing import Any


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


@cache
def _descriptions() -> Any:
    import botocore.session

    return botocore.session.get_session().get_component("data_loader")
