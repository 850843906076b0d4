"""Kafka Connect with Apache Iceberg's sink, on one standalone worker: one connector for each landing.

The sink commits by the clock, so a landing waits up to one interval for its last commit. A connector is deleted behind its landing,
unmeasured.
"""

from __future__ import annotations

import subprocess
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from bench.peers import lake
from bench.peers.columns import COORDINATES, table_row
from bench.peers.jars import sink_jars
from bench.shapes import Format
from bench.topics import Job, Topic, Way
from frazil.local.connect_worker import AVRO_CONVERTER, request
from frazil.local.ports import HOST, free_ports
from frazil.local.process import answers, properties_file
from frazil.local.registry import CONFLUENT_API
from frazil.local.toolchain.class_path import LOCAL_FILES
from frazil.local.toolchain.jars import jars
from frazil.local.toolchain.java import java

COMMIT_SECONDS = 5
READY_SECONDS = 60
LONGEST_SECONDS = 900
SINK = "org.apache.iceberg.connect.IcebergSinkConnector"
_LOOK_SECONDS = 0.1


@contextmanager
def connect(job: Job) -> Iterator[Mapping[str, Way]]:
    """Land with four metadata columns."""
    admin = AdminClient({"bootstrap.servers": job.environment.kafka.bootstrap, "log_level": 3})
    with _worker(job) as worker:
        catalog = lake.catalog_of(job)
        leaving: list[threading.Thread] = []

        def ready(topic: Topic, table: str) -> Callable[[], int]:
            for thread in leaving:
                thread.join()
            name = table.replace(".", "-")
            lake.create(catalog, table, table_row(job.shape, coordinates=True))
            admin.create_topics([NewTopic(f"control-{name}", 1, 1)])[f"control-{name}"].result()
            settings = connector(job, topic, table, control=f"control-{name}")

            def land() -> int:
                request(worker, "PUT", f"/connectors/{name}/config", settings)
                found = lake.await_count(
                    name,
                    lambda: lake.landed(catalog, table),
                    topic.rows,
                    check=lambda: _check(worker, name),
                    longest_seconds=LONGEST_SECONDS,
                )
                leaving.append(threading.Thread(target=request, args=(worker, "DELETE", f"/connectors/{name}")))
                leaving[-1].start()
                return found

            return land

        yield {"connect": ready}


def _check(worker: str, name: str) -> None:
    """Raise if the connector or one of its tasks failed."""
    status = request(worker, "GET", f"/connectors/{name}/status", unless=404)  # it is being created
    for part in (status["connector"], *status["tasks"]) if status else ():
        if part["state"] == "FAILED":
            raise RuntimeError(f"{name} failed: {part.get('trace')}")


def connector(job: Job, topic: Topic, table: str, *, control: str) -> dict[str, str]:
    """Return the settings of the connector of one landing.

    The consumer takes larger batches than by default, which saves CPU.
    """
    assert job.environment.registry is not None
    bootstrap = job.environment.kafka.bootstrap
    settings = {
        "connector.class": SINK,
        "tasks.max": str(job.cores),
        "topics": topic.name,
        "iceberg.tables": table,
        "iceberg.control.topic": control,
        "iceberg.control.commit.interval-ms": str(COMMIT_SECONDS * 1000),
        "iceberg.control.commit.timeout-ms": "30000",
        "iceberg.kafka.bootstrap.servers": bootstrap,
        "iceberg.catalog": "lake",
        **{f"iceberg.catalog.{name}": value for name, value in lake.catalog_options(job).items()},
        **{f"iceberg.hadoop.{name.removeprefix('spark.hadoop.')}": value for name, value in LOCAL_FILES.items()},
        "consumer.override.max.poll.records": "5000",
        "consumer.override.fetch.min.bytes": "100000",
        "consumer.override.max.partition.fetch.bytes": str(8 << 20),
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "transforms": "coordinates",
        "transforms.coordinates.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        **{f"transforms.coordinates.{name}.field": f"_kafka_{name}" for name in COORDINATES},
    }
    if job.shape.format is Format.JSON:
        settings["value.converter"] = "org.apache.kafka.connect.json.JsonConverter"
        return {**settings, "value.converter.schemas.enable": "false"}
    registry = job.environment.registry.url.removesuffix(CONFLUENT_API) + "/apis/registry/v2"
    return {
        **settings,
        "value.converter": AVRO_CONVERTER,
        "value.converter.apicurio.registry.url": registry,
        "value.converter.apicurio.registry.as-confluent": "true",
        "value.converter.apicurio.registry.use-id": "contentId",
        "value.converter.apicurio.registry.headers.enabled": "false",
    }


@contextmanager
def _worker(job: Job) -> Iterator[str]:
    """Run a worker, and yield its address."""
    folder = Path(job.folder)
    base = [str(jar) for jar in (*jars("connect"), *(jar for jar in sink_jars() if jar.name.startswith("sqlite-jdbc")))]
    _link_plugins(folder / "plugins")
    with free_ports(1) as (port,), (folder / "connect.log").open("w") as log:
        url = f"http://{HOST}:{port}"
        command = [str(java()), f"-Xmx{job.heap}", "-Dlog4j2.level=WARN", "-cp", ":".join(base)]
        command += ["org.apache.kafka.connect.cli.ConnectStandalone", str(_settings(folder, job, url))]
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + READY_SECONDS
            while not answers(f"{url}/connectors"):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("the Connect worker did not start: see its log")
                time.sleep(_LOOK_SECONDS)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _settings(folder: Path, job: Job, url: str) -> Path:
    """Write the worker's settings.

    A task without records waits in its poll for the next flush of offsets, and answers a commit from there only. By default that is a
    minute, so the last rows would wait.
    """
    settings = {
        "bootstrap.servers": job.environment.kafka.bootstrap,
        "listeners": url,
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "offset.storage.file.filename": folder / "offsets",
        "offset.flush.interval.ms": 1000,
        "connector.client.config.override.policy": "All",
        "plugin.path": folder / "plugins",
        "plugin.discovery": "service_load",
    }
    return properties_file(folder / "worker.properties", settings)


def _link_plugins(folder: Path) -> None:
    """Create a folder for each plugin, with links to its jars, and the service file that Apicurio's converter lacks."""
    for name, files in (("iceberg-sink", sink_jars()), ("avro-converter", jars("avro-converter"))):
        (folder / name).mkdir(parents=True)
        for jar in files:
            (folder / name / jar.name).symlink_to(jar)
    services = {
        "iceberg-sink": ("org.apache.kafka.connect.sink.SinkConnector", SINK),
        "avro-converter": ("org.apache.kafka.connect.storage.Converter", AVRO_CONVERTER),
    }
    for name, (of, service) in services.items():
        with zipfile.ZipFile(folder / name / "service-files.jar", "w") as written:
            written.writestr(f"META-INF/services/{of}", f"{service}\n")
