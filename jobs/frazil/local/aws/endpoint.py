"""The edge: the one port at which whoever knows LocalStack looks for AWS, and what to tell everyone else."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from frazil.local.ports import HOST

DUMMY = "test"
"""Key and key id; moto takes any."""
_HERE = (HOST, "localhost")


def edge_port() -> int:
    """Where `localstack_client` looks for AWS: by AWS_ENDPOINT_URL or LOCALSTACK_HOST if they name this machine, else 4566."""
    from localstack_client.config import DEFAULT_EDGE_PORT, get_service_endpoints

    asked = urlsplit(get_service_endpoints()["s3"])
    return asked.port if asked.hostname in _HERE and asked.port else int(DEFAULT_EDGE_PORT)


def exports(endpoint: str, *, region: str) -> Mapping[str, str]:
    """What a shell has to export so that AWS's own clients, Terraform and `localstack_client` find an endpoint."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": DUMMY,
        "AWS_SECRET_ACCESS_KEY": DUMMY,
        "AWS_DEFAULT_REGION": region,
    }
