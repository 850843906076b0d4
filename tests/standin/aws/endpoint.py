"""The endpoint of the local AWS: LocalStack's port, and the variables for clients that do not know LocalStack."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from frazil.local.ports import HOST

DUMMY = "test"
"""The key and the key id; moto accepts any."""
_HERE = (HOST, "localhost")


def edge_port() -> int:
    """Return the port that `localstack_client` uses: of AWS_ENDPOINT_URL or LOCALSTACK_HOST on this machine, else 4566."""
    from localstack_client.config import DEFAULT_EDGE_PORT, get_service_endpoints

    asked = urlsplit(get_service_endpoints()["s3"])
    return asked.port if asked.hostname in _HERE and asked.port else int(DEFAULT_EDGE_PORT)


def exports(endpoint: str, *, region: str) -> Mapping[str, str]:
    """Return the variables with which AWS's clients, Terraform and `localstack_client` find an endpoint."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": DUMMY,
        "AWS_SECRET_ACCESS_KEY": DUMMY,
        "AWS_DEFAULT_REGION": region,
    }
