"""The local world: a broker, a registry and a lake for one project folder, started and stopped together.

Everything of it is in the project's `.frazil` folder: data, logs, which processes run (`run/`), what is up
(`local.json`), and the environment documents by which the rest of Frazil finds it (`environments/`).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from frazil.declaration.environment import Environment, environment_document
from frazil.errors import LocalPartFailed
from frazil.local.aws.start import start_aws
from frazil.local.environments import file_lake, glue_lake, rest_lake
from frazil.local.kafka import start_kafka
from frazil.local.object_store import start_object_store
from frazil.local.process import Process, noted, stop
from frazil.local.registry import start_registry
from frazil.local.state_file import STATE_FILE, Address, locked, running_addresses, write_document, write_state
from frazil.local.watchdog import kept_from_outliving


class Part(StrEnum):
    """What a local world can be made of. A lake on files needs no process and is always there.

    `kafka` is the broker, `registry` the schema registry. Two more lakes, for what files cannot show: `object-store` is
    an S3 with an Iceberg REST catalog, `aws` an S3 with Glue, in memory only. `aws` has the other services of AWS that a
    deployment needs, too, and an EMR Serverless whose job runs are processes of this machine.
    """

    KAFKA = "kafka"
    REGISTRY = "registry"
    OBJECT_STORE = "object-store"
    AWS = "aws"


USUAL = (Part.KAFKA, Part.REGISTRY)
_OPTIONS = {Part.KAFKA: "", Part.REGISTRY: "", Part.OBJECT_STORE: " --object-store", Part.AWS: " --cloud"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServices:
    """A world that is up."""

    home: Path
    """Its `.frazil` folder."""
    addresses: Mapping[str, Address]
    """What each part that is up is reached by."""

    @property
    def bootstrap(self) -> str:
        """The broker's `host:port`."""
        return self.address(Part.KAFKA)["bootstrap"]

    @property
    def registry_url(self) -> str:
        """The registry's Confluent API."""
        return self.address(Part.REGISTRY)["url"]

    @property
    def environment(self) -> Environment:
        """The environment `local`: tables in a folder, their catalog a SQLite file."""
        return file_lake(self.home, bootstrap=self.bootstrap, registry_url=self._registry_url_if_up())

    @property
    def rest_environment(self) -> Environment:
        """The environment `rest`: the same broker and registry, tables in the object store by its REST catalog."""
        store = self.address(Part.OBJECT_STORE)
        return rest_lake(
            self.home,
            bootstrap=self.bootstrap,
            registry_url=self._registry_url_if_up(),
            s3=store["s3"],
            catalog=store["catalog"],
        )

    @property
    def glue_environment(self) -> Environment:
        """The environment `glue`: the same broker and registry, tables in the local AWS by its Glue catalog."""
        return glue_lake(
            self.home,
            bootstrap=self.bootstrap,
            registry_url=self._registry_url_if_up(),
            endpoint=self.address(Part.AWS)["endpoint"],
        )

    @property
    def environment_file(self) -> Path:
        """The document of the environment `local`; those of `rest` and `glue` are beside it."""
        return self.home / "environments" / "local.json"

    def address(self, part: Part) -> Address:
        """What a part is reached by. Raises `LocalPartFailed` if it is not up."""
        if part not in self.addresses:
            raise LocalPartFailed(
                f"the local part {part} does not run",
                where=str(self.home),
                do=f"Start it: `frazil local up{_OPTIONS[part]}`",
            )
        return self.addresses[part]

    def _registry_url_if_up(self) -> str | None:
        return self.registry_url if Part.REGISTRY in self.addresses else None


def up(
    folder: Path,
    *,
    parts: Sequence[Part] = USUAL,
    compatibility: str | None = None,
    aws_port: int | None = None,
) -> LocalServices:
    """Start what is asked for and does not run yet, all at once, and write the environment documents.

    What runs already is kept, and stays part of the world. `compatibility` is the level the registry checks new schemas
    by from its start on; without it, the level stays as it was, at first NONE. `aws_port` is where the local AWS is to be,
    or the first free port after it. When a part fails, those that this call has started are stopped again, and the part's
    `LocalPartFailed` is raised.
    """
    home = folder.resolve() / ".frazil"
    with locked(home):
        addresses = running_addresses(home)
        for process in noted(home):
            if process.name not in addresses:  # it has ended, or its start was never finished
                stop(process)
        if Part.AWS not in addresses:  # the runs of one that was killed
            _stop_together(noted(home / Part.AWS))
        starts: dict[Part, Callable[[], Address]] = {
            Part.KAFKA: lambda: {"bootstrap": start_kafka(home)},
            Part.REGISTRY: lambda: {"url": start_registry(home, compatibility=compatibility)},
            Part.OBJECT_STORE: lambda: asdict(start_object_store(home)),
            Part.AWS: lambda: {"endpoint": start_aws(home, lowest_port=aws_port)},
        }
        missing = [part for part in dict.fromkeys(parts) if part not in addresses]
        addresses |= _start_together(home, {part: starts[part] for part in missing}, kept=set(addresses))
        world_now = LocalServices(home=home, addresses=addresses)
        _write_documents(world_now)
    return world_now


def running(folder: Path) -> LocalServices:
    """The world of a folder as it is, without starting anything."""
    home = folder.resolve() / ".frazil"
    return LocalServices(home=home, addresses=running_addresses(home))


def down(folder: Path, *, data: bool = False) -> None:
    """Stop every part, whoever started it. With `data`, remove what they held too. Fine when nothing runs."""
    home = folder.resolve() / ".frazil"
    if not home.is_dir():
        return
    with locked(home):
        _stop_together(noted(home))
        _stop_together(noted(home / Part.AWS))  # job runs: after the one who would begin them again
        shutil.rmtree(home / Part.AWS / "runs", ignore_errors=True)
        for told in (STATE_FILE, *(f"environments/{name}.json" for name in ("local", "rest", "glue"))):
            (home / told).unlink(missing_ok=True)
        if data:
            for held in (*Part, "lake", "logs", "run", "secrets"):
                shutil.rmtree(home / held, ignore_errors=True)


@contextmanager
def world(
    folder: Path | None = None, *, parts: Sequence[Part] = USUAL, compatibility: str | None = None
) -> Iterator[LocalServices]:
    """Have a world inside the `with` block; without a folder, in a temporary one that is removed with its data.

    It ends with the block, and also when this process is killed inside it.
    """
    with ExitStack() as left:
        place = (folder or Path(left.enter_context(tempfile.TemporaryDirectory(prefix="frazil-")))).resolve()
        left.enter_context(kept_from_outliving(place, is_temporary=folder is None))
        left.callback(down, place)
        yield up(place, parts=parts, compatibility=compatibility)


def _start_together(home: Path, starts: Mapping[Part, Callable[[], Address]], *, kept: set[str]) -> dict[str, Address]:
    """Start parts at once and return their addresses; when one fails, end the others and raise its error."""
    if not starts:
        return {}

    def end() -> None:
        _stop_together([process for process in noted(home) if process.name not in kept])

    with ThreadPoolExecutor(max_workers=len(starts)) as pool:
        pending = {part: pool.submit(begin) for part, begin in starts.items()}
        try:
            done, _ = wait(pending.values(), return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BaseException:
            end()
            pool.shutdown()
            end()  # what was still being prepared may have been started since
            raise
    return {str(part): future.result() for part, future in pending.items()}


def _stop_together(processes: Sequence[Process]) -> None:
    if processes:
        with ThreadPoolExecutor(max_workers=len(processes)) as pool:
            list(pool.map(stop, processes))


def _write_documents(world_now: LocalServices) -> None:
    """Write what is up, and the environment documents that can be told by it: without a broker, none."""
    home, addresses = world_now.home, world_now.addresses
    write_state(home, addresses)
    if Part.KAFKA in addresses:
        write_document(world_now.environment_file, environment_document(world_now.environment))
        if Part.OBJECT_STORE in addresses:
            write_document(home / "environments" / "rest.json", environment_document(world_now.rest_environment))
        if Part.AWS in addresses:
            write_document(home / "environments" / "glue.json", environment_document(world_now.glue_environment))
