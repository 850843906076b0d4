"""The start of the local AWS."""

from __future__ import annotations

import sys
from pathlib import Path

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from frazil.clients.aws_session import aws_session
from frazil.local.credentials import KeyFiles
from frazil.local.kept_ports import kept_ports
from frazil.local.ports import HOST, free_ports
from frazil.local.process import await_ready, start

READY_SECONDS = 60.0
REGION = "us-east-1"
BUCKET = "lake"
WAREHOUSE = f"s3://{BUCKET}/warehouse"

_PART = "aws"


def key_files(home: Path) -> KeyFiles:
    """Return the paths of a `.frazil` folder's key pair."""
    return KeyFiles.of(home, _PART)


def start_aws(home: Path, *, lowest_port: int | None = None) -> str:
    """Start the local AWS, empty but for the bucket `lake`. Return the address of all its services once it answers.

    It uses the first free port from `lowest_port` on, else that of its last start. Raises `LocalPartFailed` with the end of
    the log if it does not start.
    """
    keys = key_files(home)
    keys.make()
    reserved = kept_ports(home, _PART) if lowest_port is None else free_ports(1, lowest=lowest_port)
    with reserved as (port,):
        endpoint = f"http://{HOST}:{port}"
        server = start(_PART, [sys.executable, "-m", "frazil.local.aws.server", str(port)], home=home)
        await_ready(server, lambda: _has_bucket(endpoint, keys), seconds=READY_SECONDS)
    return endpoint


def _has_bucket(endpoint: str, keys: KeyFiles) -> bool:
    """Return whether S3 answers, and create its bucket."""
    pair = keys.credentials()
    s3 = aws_session().client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=pair.access_key,
        aws_secret_access_key=pair.secret_key,
        config=Config(connect_timeout=2, read_timeout=10, retries={"total_max_attempts": 1}),
    )
    try:
        s3.create_bucket(Bucket=BUCKET)
    except (BotoCoreError, ClientError):
        return False
    return True
