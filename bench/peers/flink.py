"""Flink SQL, in a JVM of its own with a cluster of one: `INSERT INTO … SELECT` from a topic, until its end.

The JVM is Flink's jars behind py4j, which gives it the statements; nothing of Flink's Python is in it. Iceberg's sink is the second one
(`use-v2-sink`): with the first, two of 26 landings lost rows. Each landing is one job, whose last checkpoint commits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from bench.peers import lake
from bench.peers.columns import COORDINATES, selected, source_columns, table_row
from bench.peers.jars import flink_jars
from bench.shapes import Format
from bench.topics import Job, Topic, Way
from frazil.local.toolchain.class_path import LOCAL_FILES
from frazil.local.toolchain.java import java

CHECKPOINT_SECONDS = 10
SETTINGS = {
    "execution.target": "local",
    "execution.runtime-mode": "streaming",
    "execution.checkpointing.mode": "EXACTLY_ONCE",
    "pipeline.object-reuse": "true",
    "table.exec.iceberg.use-v2-sink": "true",
    "table.local-time-zone": "UTC",
    "rest.bind-address": "127.0.0.1",
}
_OPENED = (
    "java.lang java.lang.reflect java.net java.io java.nio sun.nio.ch java.text java.time java.util "
    "java.util.concurrent java.util.concurrent.atomic java.util.concurrent.locks"
)
"""Packages that Flink's serializers read by reflection, as its own `config.yaml` opens them."""
_LOGGING = """status = error
appender.f.type = Console
appender.f.name = f
appender.f.target = SYSTEM_ERR
appender.f.layout.type = PatternLayout
appender.f.layout.pattern = %d %p %c{1} %m%n
rootLogger.level = warn
rootLogger.appenderRef.f.ref = f
"""
_METADATA_TYPES = {
    "topic": "STRING NOT NULL",
    "partition": "INT NOT NULL",
    "offset": "BIGINT NOT NULL",
    "timestamp": "TIMESTAMP_LTZ(3) NOT NULL",
}
PLACES = tuple(f"`_kafka_{name}` {_METADATA_TYPES[name]} METADATA FROM '{name}' VIRTUAL" for name in COORDINATES)
"""The columns of a source that have the place of a record."""


@contextmanager
def flink(job: Job) -> Iterator[Mapping[str, Way]]:
    """Land with four metadata columns, and without any."""
    catalog = lake.catalog_of(job)
    with tables(job) as environment:

        def ready(topic: Topic, table: str, *, coordinates: bool) -> Callable[[], int]:
            lake.create(catalog, table, table_row(job.shape, coordinates=coordinates))
            environment.executeSql(source(job, topic, coordinates=coordinates))
            picked = ", ".join([*selected(job.shape), *(f"`_kafka_{name}`" for name in COORDINATES if coordinates)])
            statement = f"INSERT INTO lake.{table} SELECT {picked} FROM {_name(topic, coordinates=coordinates)}"

            def land() -> int:
                try:
                    getattr(environment.executeSql(statement), "await")()
                except Py4JJavaError as failed:  # its text is in the JVM, which ends
                    raise RuntimeError(str(failed)) from None
                return lake.landed(catalog, table)

            return land

        yield {
            "flink": lambda topic, table: ready(topic, table, coordinates=True),
            "flink_bare": lambda topic, table: ready(topic, table, coordinates=False),
        }


def source(job: Job, topic: Topic, *, coordinates: bool) -> str:
    """Return the statement that declares a topic, from its begin to its present end."""
    columns = source_columns(job.shape)
    columns += PLACES if coordinates else ()
    settings = {
        "connector": "kafka",
        **consumer(job, topic.name),
        "scan.startup.mode": "earliest-offset",
        "scan.bounded.mode": "latest-offset",
        **_format(job),
    }
    name = _name(topic, coordinates=coordinates)
    return f"CREATE TEMPORARY TABLE IF NOT EXISTS {name} ({', '.join(columns)}) {options(settings)}"


def consumer(job: Job, topic: str) -> dict[str, str]:
    """Return the options that each source of a topic has."""
    return {
        "topic": topic,
        "properties.bootstrap.servers": job.environment.kafka.bootstrap,
        "properties.group.id": f"flink-{topic}",
        "properties.commit.offsets.on.checkpoint": "false",
    }


def _name(topic: Topic, *, coordinates: bool) -> str:
    return f"`{topic.name}_{'coordinates' if coordinates else 'bare'}`"


def _format(job: Job) -> dict[str, str]:
    if job.shape.format is Format.JSON:
        return {"format": "json", "json.timestamp-format.standard": "ISO-8601"}
    return avro_format(job)


def avro_format(job: Job) -> dict[str, str]:
    """Return the options of a source of Avro whose schemas the registry has."""
    assert job.environment.registry is not None
    return {
        "format": "avro-confluent",
        "avro-confluent.url": job.environment.registry.url,
        "avro-confluent.schema": json.dumps(without_instants(json.loads(job.shape.schema))),
    }


def without_instants(schema: Any) -> Any:
    """Return an Avro schema in which instants are plain numbers."""
    match schema:
        case list():
            return [without_instants(part) for part in schema]
        case dict():
            is_instant = str(schema.get("logicalType", "")).startswith("timestamp")
            return {k: without_instants(v) for k, v in schema.items() if not (is_instant and k == "logicalType")}
        case _:
            return schema


@contextmanager
def tables(job: Job, *, checkpoint_seconds: int = CHECKPOINT_SECONDS) -> Iterator[Any]:
    """Start the JVM, and yield Flink's `TableEnvironment` with the catalog of all contenders."""
    folder = Path(job.folder)
    (folder / "log4j2.properties").write_text(_LOGGING)
    (folder / "core-site.xml").write_text(_core_site(LOCAL_FILES))
    of_jvm = [f"-Xmx{job.heap}", f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"]
    of_jvm += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED.split()]
    with (folder / "flink.log").open("w") as log:
        port, token, process = launch_gateway(
            classpath=":".join(map(str, (folder, *flink_jars()))),
            javaopts=of_jvm,
            die_on_exit=True,
            enable_auth=True,
            java_path=str(java()),
            redirect_stdout=log,
            redirect_stderr=log,
            return_proc=True,
        )
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
        try:
            table_api = gateway.jvm.org.apache.flink.table.api
            environment = table_api.TableEnvironment.create(table_api.EnvironmentSettings.inStreamingMode())
            own = {
                "parallelism.default": str(job.cores),
                "execution.checkpointing.interval": f"{checkpoint_seconds} s",
                "execution.checkpointing.dir": (folder / "checkpoints").as_uri(),
            }
            for name, value in {**SETTINGS, **own}.items():
                environment.getConfig().set(name, value)
            environment.executeSql(_catalog(job))
            yield environment
        finally:
            gateway.shutdown()
            process.kill()  # threads of Flink outlive the gateway
            process.wait()


def _catalog(job: Job) -> str:
    settings = {**lake.catalog_options(job), "type": "iceberg", "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog"}
    return f"CREATE CATALOG lake {options(settings)}"


def options(given: Mapping[str, str]) -> str:
    """Return the clause `WITH` of a statement."""
    listed = (f"'{name}' = '{value}'" for name, value in given.items())
    return f"WITH ({', '.join(listed)})"


def _core_site(settings: Mapping[str, str]) -> str:
    """Return Spark's settings of Hadoop as Hadoop's own file."""
    listed = "".join(
        f"<property><name>{name.removeprefix('spark.hadoop.')}</name><value>{value}</value></property>"
        for name, value in settings.items()
    )
    return f"<configuration>{listed}</configuration>"
