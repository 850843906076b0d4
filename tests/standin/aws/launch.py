"""The start of the local AWS next to the local services of a project folder.

`frazil local down` and the end of a `world` stop it, since its process is noted in the folder `aws` of theirs.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from frazil.clients.aws_session import aws_session
from frazil.declaration.catalogs import GlueCatalog, ObjectStore
from frazil.declaration.documents.document import environment_document
from frazil.declaration.environment import Environment, Kafka, Registry
from frazil.local.ports import HOST, free_ports, locked, write_document
from frazil.local.process import await_ready, is_alive, noted, start, stop
from frazil.local.seaweedfs import KeyFiles
from frazil.local.services import LocalServices, Part

READY_SECONDS = 60.0
REGION = "us-east-1"
BUCKET = "lake"
WAREHOUSE = f"s3://{BUCKET}/warehouse"
PART = "aws"
SERVER = "server"
ROOT = Path(__file__).parents[3]


def key_files(home: Path) -> KeyFiles:
    """Return the paths of a `.frazil` folder's key pair."""
    return KeyFiles.of(home, PART)


def endpoint_of(home: Path) -> str:
    """Return the address of the local AWS that was started last in a `.frazil` folder."""
    return (home / PART / "endpoint").read_text()


def up(world: LocalServices, *, lowest_port: int | None = None) -> str:
    """Start the local AWS if it does not run, empty but for the bucket `lake`. Return the address of all its services.

    It uses the first free port from `lowest_port` on. Raises `LocalPartFailed` with the end of the log if it does not start.
    """
    home = world.home
    with locked(home):
        running = [process for process in noted(home / PART) if process.name == SERVER and is_alive(process)]
        if not running:
            for process in noted(home / PART):  # job runs that outlived a killed AWS
                stop(process)
            _start(home, lowest_port)
        if Part.KAFKA in world.addresses:
            document = environment_document(glue_environment(world))
            write_document(world.environment_file.with_name("glue.json"), document)
        return endpoint_of(home)


def with_aws(world: LocalServices) -> LocalServices:
    """Start the local AWS next to running services, and return these."""
    up(world)
    return world


def glue_environment(world: LocalServices) -> Environment:
    """Return the environment `glue`: tables in the S3 of the local AWS, with its Glue catalog."""
    endpoint = endpoint_of(world.home)
    key_id, key = key_files(world.home).references()
    return Environment(
        name="glue",
        kafka=Kafka(bootstrap=world.bootstrap),
        registry=Registry(url=world.registry_url) if Part.REGISTRY in world.addresses else None,
        catalog=GlueCatalog(warehouse=WAREHOUSE, region=REGION, endpoint=endpoint),
        object_store=ObjectStore(
            endpoint=endpoint, path_style=True, region=REGION, access_key_id=key_id, secret_access_key=key
        ),
    )


def _start(home: Path, lowest_port: int | None) -> None:
    keys = key_files(home)
    keys.make()
    with free_ports(1) if lowest_port is None else free_ports(1, lowest=lowest_port) as (port,):
        endpoint = f"http://{HOST}:{port}"
        path = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        command = [sys.executable, "-m", "tests.standin.aws.server", str(port)]
        server = start(SERVER, command, home=home / PART, environment={"PYTHONPATH": path})
        await_ready(server, lambda: _has_bucket(endpoint, keys), seconds=READY_SECONDS)
    (home / PART / "endpoint").write_text(endpoint)


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
