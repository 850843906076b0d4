"""The local services of one project folder, a broker, a registry and a lake, started and stopped together.

All their files are in the project's `.frazil` folder: data, logs, the running processes (`run/`), the addresses of the last
starts (`local.json`), and the environment documents that the rest of Frazil reads (`environments/`).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from frazil.declaration.catalogs import LocalCatalog, ObjectStore, RestAuth, RestCatalog
from frazil.declaration.documents.document import environment_document
from frazil.declaration.environment import Environment, Kafka, Registry
from frazil.errors import LocalPartFailed
from frazil.local import seaweedfs
from frazil.local.connect_worker import PLUGINS, start_connect
from frazil.local.kafka_broker import start_kafka
from frazil.local.ports import STATE_FILE, Address, Moved, keep_addresses, locked, running_addresses, write_document
from frazil.local.postgres import start_postgres
from frazil.local.process import Process, noted, stop
from frazil.local.registry import start_registry
from frazil.local.seaweedfs import start_object_store
from frazil.local.toolchain.jars import jars, postgres_purpose
from frazil.local.watchdog import kept_from_outliving

P = TypeVar("P", bound=str)


def start_together(home: Path, starts: Mapping[P, Callable[[], Address]], *, kept: set[str]) -> dict[str, Address]:
    """Start parts in parallel and return their addresses. If one fails, stop all but `kept` and raise its error."""
    if not starts:
        return {}

    def end() -> None:
        stop_together([process for process in noted(home) if process.name not in kept])

    with ThreadPoolExecutor(max_workers=len(starts)) as pool:
        pending = {part: pool.submit(begin) for part, begin in starts.items()}
        try:
            done, _ = wait(pending.values(), return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BaseException:
            end()
            pool.shutdown()
            end()  # parts that were still being prepared may have started since
            raise
    return {str(part): future.result() for part, future in pending.items()}


def stop_together(processes: Sequence[Process]) -> None:
    """Stop processes in parallel. Raises `LocalPartFailed` if one does not end."""
    if processes:
        with ThreadPoolExecutor(max_workers=len(processes)) as pool:
            list(pool.map(stop, processes))


def fetch_jars_of(parts: Iterable[Part]) -> None:
    """Fetch the jars of these services that are not in the cache. Raises `JarsUnavailable` or `JarMismatch`."""
    for part in parts:
        for purpose in purposes_of(part):
            jars(purpose)


def purposes_of(part: Part) -> tuple[str, ...]:
    """Return the purposes of a service in the lock; none if it needs no jar."""
    match part:
        case Part.KAFKA | Part.REGISTRY:
            return (part.value,)
        case Part.CONNECT:
            return ("connect", *PLUGINS)
        case Part.POSTGRES:
            postgres = postgres_purpose()
            return (postgres,) if postgres else ()
        case Part.OBJECT_STORE:
            return ()


class Part(StrEnum):
    """A local service. A lake on files needs no process and always exists.

    `kafka` is the broker, `registry` the schema registry. `object-store` is an S3 with an Iceberg REST catalog.

    `postgres` is a database, and `connect` a Kafka Connect worker whose Debezium connector captures the database's changes.
    The worker needs the broker.
    """

    KAFKA = "kafka"
    REGISTRY = "registry"
    OBJECT_STORE = "object-store"
    POSTGRES = "postgres"
    CONNECT = "connect"


USUAL = (Part.KAFKA, Part.REGISTRY)
CHANGE_DATA = (Part.POSTGRES, Part.CONNECT)
_OPTIONS = {Part.OBJECT_STORE: " --object-store"} | dict.fromkeys(CHANGE_DATA, " --postgres")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServices:
    """The running services of one folder."""

    home: Path
    """The `.frazil` folder."""
    addresses: Mapping[str, Address]
    """The addresses of each running part."""
    moved: tuple[Moved, ...] = field(default=(), compare=False)
    """The parts that this start gave another address than the last one, because its port is in use."""

    @property
    def bootstrap(self) -> str:
        """The broker's `host:port`."""
        return self.address(Part.KAFKA)["bootstrap"]

    @property
    def registry_url(self) -> str:
        """The registry's Confluent API."""
        return self.address(Part.REGISTRY)["url"]

    @property
    def database(self) -> str:
        """The connection URI of PostgreSQL."""
        return self.address(Part.POSTGRES)["uri"]

    @property
    def connect_url(self) -> str:
        """The REST API of the Connect worker."""
        return self.address(Part.CONNECT)["url"]

    @property
    def environment(self) -> Environment:
        """The environment `local`: tables in a folder of `.frazil`, their catalog a SQLite file."""
        lake = self.home / "lake"
        (lake / "warehouse").mkdir(parents=True, exist_ok=True)
        return Environment(
            name="local",
            kafka=Kafka(bootstrap=self.bootstrap),
            registry=self._registry,
            catalog=LocalCatalog(path=str(lake / "catalog.db"), warehouse=(lake / "warehouse").as_uri()),
        )

    @property
    def rest_environment(self) -> Environment:
        """The environment `rest`: tables in the object store, with its REST catalog and signed requests."""
        store, region = self.address(Part.OBJECT_STORE), seaweedfs.REGION
        key_id, key = seaweedfs.key_files(self.home).references()
        return Environment(
            name="rest",
            kafka=Kafka(bootstrap=self.bootstrap),
            registry=self._registry,
            catalog=RestCatalog(
                uri=store["catalog"],
                warehouse=seaweedfs.WAREHOUSE,
                auth=RestAuth.SIGV4,
                signing_name=seaweedfs.SIGNING_NAME,
                region=region,
                data_location=f"s3://{seaweedfs.BUCKET}/data",
            ),
            object_store=ObjectStore(
                endpoint=store["s3"], path_style=True, region=region, access_key_id=key_id, secret_access_key=key
            ),
        )

    @property
    def environment_file(self) -> Path:
        """The document of the environment `local`; that of `rest` is next to it."""
        return self.home / "environments" / "local.json"

    def address(self, part: Part) -> Address:
        """Return the address of a part. Raises `LocalPartFailed` if it does not run."""
        if part not in self.addresses:
            what = f"the local part {part} does not run"
            raise LocalPartFailed(what, where=str(self.home), do=f"Start it: `frazil local up{_OPTIONS.get(part, '')}`")
        return self.addresses[part]

    @property
    def _registry(self) -> Registry | None:
        return Registry(url=self.registry_url) if Part.REGISTRY in self.addresses else None


def up(folder: Path, *, parts: Sequence[Part] = USUAL, compatibility: str | None = None) -> LocalServices:
    """Start the parts that do not run yet, in parallel, and write the environment documents.

    Running parts stay. `compatibility` is the level at which the registry checks new schemas; without it, the level stays
    as it was, at first NONE. Each part has the ports of its last start, if no other process uses them (`moved`). The Connect
    worker starts after the broker, and restarts with it, because the broker's address may change. If a part fails, the parts
    that this call has started are stopped again, and the part's `LocalPartFailed` is raised.
    """
    home = folder.resolve() / ".frazil"
    with locked(home):
        addresses = running_addresses(home)
        if Part.KAFKA not in addresses and Part.CONNECT in addresses:
            del addresses[Part.CONNECT]
            parts = (*parts, Part.KAFKA, Part.CONNECT)
        for process in noted(home):
            if process.name not in addresses:  # it has ended, or its start did not finish
                stop(process)
        starts: dict[Part, Callable[[], Address]] = {
            Part.KAFKA: lambda: {"bootstrap": start_kafka(home)},
            Part.REGISTRY: lambda: {"url": start_registry(home, compatibility=compatibility)},
            Part.OBJECT_STORE: lambda: start_object_store(home),
            Part.POSTGRES: lambda: {"uri": start_postgres(home)},
            Part.CONNECT: lambda: {"url": start_connect(home, bootstrap=world_now.bootstrap)},
        }
        missing, kept = dict.fromkeys(part for part in parts if part not in addresses), set(addresses)
        world_now = LocalServices(home=home, addresses=addresses)
        for is_last in (False, True):
            together = {part: starts[part] for part in missing if (part is Part.CONNECT) is is_last}
            addresses |= start_together(home, together, kept=kept)
        moved = keep_addresses(home, addresses)
        _write_documents(world_now)
    return replace(world_now, moved=moved)


def running(folder: Path) -> LocalServices:
    """Return the running services of a folder, without starting any."""
    home = folder.resolve() / ".frazil"
    return LocalServices(home=home, addresses=running_addresses(home))


def down(folder: Path, *, data: bool = False) -> None:
    """Stop every part, whoever started it. With `data`, also remove their data, and forget their ports. Idempotent."""
    home = folder.resolve() / ".frazil"
    if not home.is_dir():
        return
    with locked(home):
        while processes := [one for folder in (home, *home.iterdir()) if folder.is_dir() for one in noted(folder)]:
            stop_together(processes)  # a part's own ones too, and those that it started again meanwhile
        for name in ("local", "rest"):
            (home / "environments" / f"{name}.json").unlink(missing_ok=True)
        if data:
            (home / STATE_FILE).unlink(missing_ok=True)
            for held in (*Part, "lake", "logs", "run", "secrets"):
                shutil.rmtree(home / held, ignore_errors=True)


@contextmanager
def world(
    folder: Path | None = None, *, parts: Sequence[Part] = USUAL, compatibility: str | None = None
) -> Iterator[LocalServices]:
    """Run local services inside the `with` block. Without a folder, they use a temporary one that is removed afterwards.

    They stop at the end of the block, and also if this process is killed inside it.
    """
    with ExitStack() as left:
        place = (folder or Path(left.enter_context(tempfile.TemporaryDirectory(prefix="frazil-")))).resolve()
        left.enter_context(kept_from_outliving(place, is_temporary=folder is None))
        left.callback(down, place)
        yield up(place, parts=parts, compatibility=compatibility)


def _write_documents(world_now: LocalServices) -> None:
    """Write the environment documents of the running parts: without a broker, none."""
    home, addresses = world_now.home, world_now.addresses
    if Part.KAFKA in addresses:
        write_document(world_now.environment_file, environment_document(world_now.environment))
        if Part.OBJECT_STORE in addresses:
            write_document(home / "environments" / "rest.json", environment_document(world_now.rest_environment))
