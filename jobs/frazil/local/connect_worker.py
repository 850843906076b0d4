"""A Kafka Connect worker in standalone mode on this machine only, with Debezium's connector for PostgreSQL.

Each plugin has class paths of its own, in a folder of `plugin.path`. The worker finds plugins by their service files, which takes a
second less than a scan of all classes. Apicurio's converter has no such file, so its folder gets one.

The worker stores how far its connectors have read in a file next to its settings. It keeps connectors in memory only: after a
restart, they have to be created again, and then continue at the stored position.
"""

from __future__ import annotations

import json
import shutil
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from frazil.errors import LocalPartFailed
from frazil.local.ports import HOST, kept_ports
from frazil.local.process import answers, await_ready, properties_file, start
from frazil.local.registry import CONFLUENT_API
from frazil.local.toolchain.jars import jars
from frazil.local.toolchain.java import java

READY_SECONDS = 120.0
LARGEST_REQUEST_BYTES = 32 * 1024 * 1024
AVRO_CONVERTER = "io.apicurio.registry.utils.converter.AvroConverter"

PLUGINS = ("debezium-postgres", "avro-converter")
"""The plugins, as `jobs/jars.lock` calls their jars."""
_JAVA_OPTIONS = (
    "-Xms64m",
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djava.awt.headless=true",
    "-Dlog4j2.level=INFO",
)


def start_connect(home: Path, *, bootstrap: str) -> str:
    """Start a worker for the broker at `bootstrap`. Return the address of its REST API once it answers.

    Raises `LocalPartFailed` with the end of the log if it does not start.
    """
    classpath = ":".join(map(str, jars("connect")))
    folder = home / "connect"
    _link_plugins(folder / "plugins")
    with kept_ports(home, "connect") as (port,):
        url = f"http://{HOST}:{port}"
        settings = _settings(folder, bootstrap=bootstrap, url=url)
        arguments = (*_JAVA_OPTIONS, "-cp", classpath, "org.apache.kafka.connect.cli.ConnectStandalone")
        worker = start("connect", [java(), *arguments, settings], home=home)
        await_ready(worker, lambda: answers(f"{url}/health"), seconds=READY_SECONDS)
    return url


def _settings(folder: Path, *, bootstrap: str, url: str) -> Path:
    """Write the worker's settings (https://kafka.apache.org/43/configuration/kafka-connect-configs) and return the file."""
    settings = {
        "bootstrap.servers": bootstrap,
        "listeners": url,
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "offset.storage.file.filename": folder / "offsets",
        "offset.flush.interval.ms": 1000,
        "plugin.path": folder / "plugins",
        "plugin.discovery": "service_load",
        "producer.max.request.size": LARGEST_REQUEST_BYTES,
    }
    return properties_file(folder / "worker.properties", settings)


def _link_plugins(folder: Path) -> None:
    """Create a folder for each plugin, with links to its locked jars."""
    shutil.rmtree(folder, ignore_errors=True)
    for plugin in PLUGINS:
        place = folder / plugin
        place.mkdir(parents=True)
        for jar in jars(plugin):
            (place / jar.name).symlink_to(jar)
    with zipfile.ZipFile(folder / "avro-converter" / "service-files.jar", "w") as written:
        written.writestr("META-INF/services/org.apache.kafka.connect.storage.Converter", f"{AVRO_CONVERTER}\n")


_POLL_SECONDS = 0.05
_REQUEST_SECONDS = 30.0


def connector_settings(database: str, *, prefix: str, tables: Sequence[str], registry_url: str) -> dict[str, str]:
    """Return the settings of a connector that writes each table's changes to the topic `prefix.SCHEMA.TABLE`, in Avro.

    `database` is a connection URI; `tables` are names like `public.orders`. `prefix` also names the replication slot and
    the publication, so it consists of lower-case letters, digits and underscores. `registry_url` is the registry's Confluent
    API. The ids in front of records are its ids, as Confluent's serializers write them.
    """
    address = urlsplit(database)
    converter = {
        "": AVRO_CONVERTER,
        ".apicurio.registry.url": registry_url.removesuffix(CONFLUENT_API) + "/apis/registry/v2",
        ".apicurio.registry.auto-register": "true",
        ".apicurio.registry.find-latest": "true",
        ".apicurio.registry.as-confluent": "true",
        ".apicurio.registry.headers.enabled": "false",
        # The ids of the Confluent API. Apicurio's global ids, the default, name other schemas there.
        ".apicurio.registry.use-id": "contentId",
    }
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": str(address.hostname),
        "database.port": str(address.port),
        "database.user": str(address.username),
        "database.password": address.password or "",
        "database.dbname": address.path.removeprefix("/"),
        "plugin.name": "pgoutput",
        "slot.name": prefix,
        "publication.name": prefix,
        "publication.autocreate.mode": "filtered",
        "topic.prefix": prefix,
        "table.include.list": ",".join(tables),
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
        "skipped.operations": "none",  # the default skips TRUNCATE
        "poll.interval.ms": "100",
        **{f"{side}.converter{name}": value for side in ("key", "value") for name, value in converter.items()},
        "schema.name.adjustment.mode": "avro",
        "field.name.adjustment.mode": "avro",
    }


def create_connector(worker: str, name: str, settings: Mapping[str, str], *, seconds: float = 60) -> None:
    """Create a connector, or change its settings, and return once its task runs. Its snapshot of the tables may begin later.

    Raises `LocalPartFailed` with the worker's message if it refuses the settings, or if the task fails or does not start.
    """
    request(worker, "PUT", f"/connectors/{name}/config", settings)
    deadline = time.monotonic() + seconds
    while True:
        status = request(worker, "GET", f"/connectors/{name}/status", unless=404)
        found = [status["connector"], *status["tasks"]] if status else []
        states = [(one["state"], one.get("trace", "")) for one in found]
        failed = [trace for state, trace in states if state == "FAILED"]
        if failed:
            raise LocalPartFailed(f"connector {name} failed: {failed[0].strip()}", where=worker)
        if len(states) > 1 and all(state == "RUNNING" for state, _ in states):
            return
        if time.monotonic() > deadline:
            raise LocalPartFailed(f"connector {name} did not start within {seconds:g} s", where=worker)
        time.sleep(_POLL_SECONDS)


def request(
    worker: str, method: str, path: str, body: Mapping[str, str] | None = None, *, unless: int | None = None
) -> Any:
    """Send a request to a worker and return its document; None after the status `unless`."""
    content = json.dumps(dict(body)).encode() if body is not None else None
    sent = urllib.request.Request(  # noqa: S310 - a local address
        worker + path, data=content, method=method, headers={"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(sent, timeout=_REQUEST_SECONDS) as answer:  # noqa: S310 - a local address
            received = answer.read()
    except urllib.error.HTTPError as refused:
        if refused.code == unless:
            return None
        raise LocalPartFailed(
            f"the Connect worker refused {method} {path}: {refused.read().decode(errors='replace')}", where=worker
        ) from refused
    return json.loads(received) if received else None
