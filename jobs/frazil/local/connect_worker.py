"""A Kafka Connect worker in standalone mode on this machine only, with Debezium's connector for PostgreSQL.

Each plugin has class paths of its own, in a folder of `plugin.path`. The worker finds plugins by their service files, which takes a
second less than a scan of all classes. Apicurio's converter has no such file, so its folder gets one.

The worker stores how far its connectors have read in a file beside its settings. It keeps connectors in memory only: after a
restart, they have to be created again, and then continue at the stored position.
"""

from __future__ import annotations

import shutil
import urllib.request
import zipfile
from pathlib import Path

from frazil.local.ports import HOST, kept_ports
from frazil.local.process import await_ready, start
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
        await_ready(worker, lambda: _answers(url), seconds=READY_SECONDS)
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
    file = folder / "worker.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return file


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


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:  # noqa: S310 - a local address
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False
