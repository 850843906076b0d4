"""Land a few records of each kind: Spark's JVM loads the classes of which `class_data_sharing` makes an archive.

`python -m frazil.cli.demo.practice CLASSES FOLDER` lands a few records of each kind: tables of every write mode, records that are
rejected, a schema that changes, a small batch and a large one, and a run that goes on where the one before ended. It lists the
classes that Spark's JVM loaded in the file CLASSES, and prints that JVM's class path.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from frazil.cli.local_spark import jars_here, settings_here
from frazil.clients.registry.admin import RegistryAdmin
from frazil.clients.registry.client import Registry
from frazil.clients.registry.schemas import SchemaType
from frazil.clients.secrets import Secrets
from frazil.declaration import (
    Append,
    Avro,
    Changelog,
    ErrorMode,
    Json,
    JsonSchema,
    Pipeline,
    Table,
    Text,
    Topic,
    Upsert,
)
from frazil.ingest.runner import drain
from frazil.job.session import open_job
from frazil.lake.prepared_plan import SMALL_ROWS
from frazil.local.produce.produce import TopicWriter
from frazil.local.services import LocalServices, world
from frazil.local.toolchain import class_path

_FIELDS = [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"], "default": None}]
_MORE = {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None}
_JSON = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
}
_PARTITIONS, _FEW = 2, 40


def _pipelines() -> list[Pipeline]:
    columns = ("id long", "price decimal(10, 2)", "sizes map<string, int>", "place struct<city: string>")
    avro, text = Topic("avro", value=Avro(), key=Text()), Topic("json", value=Json(columns=columns), key=Text())
    declared: list[tuple[Topic, Append | Upsert | Changelog]] = [
        (avro, Append()),
        (avro, Upsert()),
        (avro, Changelog()),
        (text, Upsert()),
        (Topic("json_schema", value=JsonSchema()), Append()),
    ]
    return [
        Pipeline(
            topic=topic,
            table=Table(f"practice.{topic.name}_{number}"),
            write=write,
            on_error=ErrorMode.DEAD_LETTER,
            max_rejected_percent=100,
        )
        for number, (topic, write) in enumerate(declared)
    ]


def _fill(services: LocalServices, count: int, *, fields: Sequence[Any]) -> None:
    registry = RegistryAdmin(services.registry_url)
    schema = json.dumps({"type": "record", "name": "Practice", "fields": fields})
    frames = [
        b"\0" + registry.register(f"{topic}-value", text, kind).to_bytes(4, "big")
        for topic, text, kind in (
            ("avro", schema, SchemaType.AVRO),
            ("json_schema", json.dumps(_JSON), SchemaType.JSON),
        )
    ]
    later = b"\x00" * (len(fields) - len(_FIELDS))

    def avro(number: int) -> bytes | None:
        return None if number % 7 == 3 else frames[0] + bytes([number % 60 * 2]) + b"\x02\x02a" + later

    def text(number: int) -> bytes:
        return json.dumps(
            {"id": number, "price": 1.5, "sizes": {"m": 1}, "place": {"city": "a"}, "tags": ["a"]}
        ).encode()

    values = {"avro": avro, "json": text, "json_schema": lambda number: frames[1] + text(number)}
    for topic, value in values.items():
        TopicWriter(services.bootstrap, topic).send(_records(value, count))


def _records(value: Any, count: int) -> Iterator[tuple[bytes, bytes | None]]:
    for number in range(count):
        yield b"%d" % (number % 50), b"no record" if number % 19 == 5 else value(number)


def main(classes: str, folder: str) -> None:
    """Land the records, and print the class path."""
    with world(Path(folder)) as services:
        for topic in ("avro", "json", "json_schema"):
            TopicWriter(services.bootstrap, topic).create(_PARTITIONS)
        secrets, environment, jars = Secrets({}), services.environment, jars_here(services.environment)
        settings = settings_here("1g", jars)
        settings["spark.driver.extraJavaOptions"] = f"-XX:DumpLoadedClassList={classes} -XX:TieredStopAtLevel=1"
        assert environment.registry is not None
        registry = Registry.of(environment.registry, secrets)
        _fill(services, _FEW, fields=_FIELDS)
        with (
            class_path.of_new_jvms(jars),
            open_job(environment, secrets, master="local[2]", settings=settings) as job,
        ):
            for count, fields in (
                (_FEW, [*_FIELDS, _MORE]),
                (2 * SMALL_ROWS * _PARTITIONS, [*_FIELDS, _MORE]),
                (0, []),
            ):
                outcomes = drain(_pipelines(), job, registry, lambda event: None, probe=False)
                if errors := [outcome.error for outcome in outcomes.values() if outcome.error]:
                    raise errors[0]
                if count:
                    _fill(services, count, fields=fields)
            jvm: Any = job.spark._jvm
            print(jvm.java.lang.System.getProperty("java.class.path"))


if __name__ == "__main__":
    main(*sys.argv[1:])
