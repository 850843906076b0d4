"""A Kafka broker of one node (KRaft) on this machine only, with its data in a folder.

Its settings suit work on declarations and tests: topics are not created automatically, internal topics are small,
transactions work, a group does not wait for members, records may be 20 MB. Records are never deleted for their age,
because example data are older than any retention.

As with Kafka's own scripts, `KAFKA_JVM_PERFORMANCE_OPTS` replaces Java's options but for the heap.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from frazil.errors import LocalPartFailed
from frazil.local.ports import HOST, free_ports, kept_ports
from frazil.local.process import await_ready, log_file, properties_file, start, tail
from frazil.local.toolchain.jars import jars
from frazil.local.toolchain.java import java

READY_SECONDS = 120.0
LARGEST_MESSAGE_BYTES = 32 * 1024 * 1024

_JAVA_OPTIONS = ("-Xms64m", "-Xmx512m", "-Djava.awt.headless=true", "-Dlog4j2.level=INFO")
_PERFORMANCE_OPTIONS = "-XX:+UseSerialGC"
_SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_SMALL_TOPIC_PARTITIONS = 5


def start_kafka(home: Path) -> str:
    """Start the broker on the data in a `.frazil` folder and return its bootstrap address once it is ready.

    Formats a new folder first. Raises `LocalPartFailed` with the end of the log if it does not start.
    """
    classpath = jars("kafka")
    folder = home / "kafka"
    with kept_ports(home, "kafka") as (port,), free_ports(1) as (controller_port,):
        settings = _settings(folder, port=port, controller_port=controller_port)
        if not (folder / "log" / "meta.properties").exists():
            _format(folder, settings, classpath, log_file(home, "kafka"))
        performance = os.environ.get("KAFKA_JVM_PERFORMANCE_OPTS", _PERFORMANCE_OPTIONS).split()
        options = (*_JAVA_OPTIONS, *performance)
        broker = start("kafka", _java(classpath, options, "kafka.Kafka", str(settings)), home=home)
        bootstrap = f"{HOST}:{port}"
        await_ready(broker, _readiness(bootstrap), seconds=READY_SECONDS)
    return bootstrap


def _readiness(bootstrap: str) -> Callable[[], bool]:
    """Return a function that asks over one connection whether the broker lists itself as one that accepts requests."""
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 50,
        "socket.connection.setup.timeout.ms": 1000,
        "log_level": 0,
        "error_cb": lambda _: None,  # an error is expected until the broker answers
    }
    admin = AdminClient(settings)

    def is_ready() -> bool:
        try:
            return bool(admin.list_topics(timeout=0.2).brokers)
        except KafkaException:
            return False

    return is_ready


def _settings(folder: Path, *, port: int, controller_port: int) -> Path:
    """Write the broker's settings (https://kafka.apache.org/43/configuration/broker-configs) and return the file."""
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.bootstrap.servers": f"{HOST}:{controller_port}",
        "listeners": f"BROKER://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"BROKER://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "BROKER",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": folder / "log",
        "auto.create.topics.enable": "false",
        "message.max.bytes": LARGEST_MESSAGE_BYTES,
        "log.retention.ms": -1,
        "log.cleaner.dedupe.buffer.size": 8 * 1024 * 1024,  # the default is a quarter of the heap
        "offsets.topic.num.partitions": _SMALL_TOPIC_PARTITIONS,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.num.partitions": _SMALL_TOPIC_PARTITIONS,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": _SMALL_TOPIC_PARTITIONS,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "background.threads": 2,
    }
    return properties_file(folder / "server.properties", settings)


def _format(folder: Path, settings: Path, classpath: Sequence[Path], log: Path) -> None:
    """Format the folder for a new cluster. If that fails, remove the folder."""
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    arguments = ("kafka.tools.StorageTool", "format", "--standalone", f"--cluster-id={cluster}", "-c", str(settings))
    with log.open("wb") as output:
        run = subprocess.run(
            _java(classpath, _SHORT_LIVED, *arguments),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=READY_SECONDS,
            check=False,
        )
    if run.returncode:
        shutil.rmtree(folder / "log", ignore_errors=True)
        raise LocalPartFailed(f"the broker's storage could not be formatted:\n{tail(log)}", where=str(folder))


def _java(classpath: Sequence[Path], options: Sequence[str], *arguments: str) -> list[str]:
    return [str(java()), *options, "-cp", ":".join(map(str, classpath)), *arguments]
