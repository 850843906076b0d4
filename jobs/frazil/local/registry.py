"""A schema registry on this machine only: Apicurio, with its implementation of Confluent's API.

Schemas and their ids are stored in a file next to the broker's data, so the ids in stored records keep their meaning.
Compatibility is not checked by default: Apicurio's level is NONE. It recognises the language of a schema by its content: a JSON
Schema without `type` or `properties` at its top needs `$schema`, else it is refused ("Failed to discover artifact type").
"""

from __future__ import annotations

import tarfile
from pathlib import Path

from frazil.clients.registry.admin import RegistryAdmin
from frazil.local.ports import HOST, kept_ports
from frazil.local.process import answers, await_ready, start
from frazil.local.toolchain.jars import cache_folder, jars, unpacked
from frazil.local.toolchain.java import java

READY_SECONDS = 120.0
CONFLUENT_API = "/apis/ccompat/v7"

_JAVA_OPTIONS = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def start_registry(home: Path, *, compatibility: str | None = None) -> str:
    """Start the registry on the schemas in a `.frazil` folder. Return the address of its Confluent API once it answers.

    `compatibility` sets the level for all subjects, for example `BACKWARD`. Raises `LocalPartFailed` with the end of the
    log if it does not start.
    """
    program = _unpacked()
    with kept_ports(home, "registry") as (port,):
        environment = {
            "QUARKUS_HTTP_HOST": HOST,
            "QUARKUS_HTTP_PORT": str(port),
            "REGISTRY_DATASOURCE_URL": "jdbc:h2:file:./schemas;WRITE_DELAY=0",
            "QUARKUS_DATASOURCE_JDBC_INITIAL_SIZE": "2",
            "QUARKUS_DATASOURCE_JDBC_MIN_SIZE": "2",
            "QUARKUS_DATASOURCE_JDBC_MAX_SIZE": "10",
        }
        registry = start("registry", [java(), *_JAVA_OPTIONS, "-jar", program], home=home, environment=environment)
        url = f"http://{HOST}:{port}{CONFLUENT_API}"
        await_ready(registry, lambda: answers(f"{url}/subjects"), seconds=READY_SECONDS)
    if compatibility is not None:
        RegistryAdmin(url).set_compatibility(compatibility)
    return url


def _unpacked() -> Path:
    """Unpack the locked archive once, into the cache, and return the program."""
    (archive,) = jars("registry")
    name = archive.name.removesuffix("-all.tar.gz")

    def unpack(folder: Path) -> None:
        with tarfile.open(archive) as content:
            content.extractall(folder, filter="data")

    return unpacked(cache_folder() / "registry" / name, f"{name}-runner.jar", unpack)
