"""The content of the stand-ins, read by independent clients: boto3, PyIceberg and Kafka's own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from confluent_kafka.admin import AdminClient
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError

from frazil.clients.object_store import ObjectStore
from frazil.declaration import Pipeline
from frazil.rollout.desired import INGEST
from frazil.rollout.state import stored_state
from tests.demo.producing import Place
from tests.demo.project import DEV

LOOK_SECONDS = 2.0
_LANDED, _DEAD = ("_kafka_partition", "_kafka_offset"), ("partition", "offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The offsets of a table's records, and the number of its rows, which is larger if records are duplicated."""

    places: frozenset[Place]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Clouds:
    """The stand-ins of AWS, found by exported variables, and of Kafka."""

    exports: Mapping[str, str]
    bootstrap: str

    def client(self, service: str) -> Any:
        """Return a client of AWS."""
        return boto3.session.Session().client(
            service,
            endpoint_url=self.exports["AWS_ENDPOINT_URL"],
            region_name=DEV.region,
            aws_access_key_id=self.exports["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.exports["AWS_SECRET_ACCESS_KEY"],
        )

    def landed(self, pipeline: Pipeline) -> Rows:
        """Return the rows of a pipeline's table."""
        return self._rows(pipeline.table.identifier, _LANDED)

    def dead_lettered(self, pipeline: Pipeline) -> Rows:
        """Return the rows of a pipeline's dead-letter table."""
        return self._rows(pipeline.table.dead_letters, _DEAD)

    def columns(self, pipeline: Pipeline) -> dict[str, str]:
        """Return a table's columns with their types."""
        table = self._catalog().load_table(pipeline.table.identifier)
        return {field.name: str(field.field_type) for field in table.schema().fields}

    def left(self) -> dict[str, list[str]]:
        """Return the remaining resources of the environment, by kind."""
        names = DEV.names
        kept = (names.bucket("state"), names.deployer)  # of the account's owner, who bootstrapped it

        def of_the_deployment(found: list[str]) -> list[str]:
            return [name for name in found if name.startswith(names.prefix) and name not in kept]

        found = {
            "buckets": of_the_deployment([each["Name"] for each in self.client("s3").list_buckets()["Buckets"]]),
            "databases": [each["Name"] for each in self.client("glue").get_databases()["DatabaseList"]],
            "applications": list(self.applications()),
            "roles": of_the_deployment([each["RoleName"] for each in self.client("iam").list_roles()["Roles"]]),
            "secrets": [each["Name"] for each in self.client("secretsmanager").list_secrets()["SecretList"]],
            "schedules": [each["Name"] for each in self.client("scheduler").list_schedules()["Schedules"]],
            "topics": self.topics(),
        }
        return {kind: names for kind, names in found.items() if names}

    def applications(self) -> dict[str, str]:
        """Return the states of the applications that are not deleted, by their names."""
        found = self.client("emr-serverless").list_applications()["applications"]
        return {each["name"]: each["state"] for each in found if each["state"] != "TERMINATED"}

    def given_up_within(self, seconds: float) -> int:
        """Wait until the reconciler has given a generation up. Return how many it has, 0 after so many seconds."""
        store, pause = ObjectStore(self.client("s3"), DEV.names.bucket("artifacts")), threading.Event()
        until = time.monotonic() + seconds
        while not (found := stored_state(store, INGEST).given_up) and time.monotonic() < until:
            pause.wait(LOOK_SECONDS)
        return len(found)

    def delete_by_hand(self, topic: str) -> None:
        """Delete a topic that Terraform does not manage, from the stand-in's organization and from the broker."""
        file = Path(self.exports["CONFLUENT_STANDIN_STATE"])
        organization = json.loads(file.read_text())
        organization["kafka_topic"] = {
            key: each for key, each in organization["kafka_topic"].items() if each["topic_name"] != topic
        }
        file.write_text(json.dumps(organization))
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        admin.delete_topics([topic])[topic].result(timeout=60)

    def topics(self) -> list[str]:
        """Return the broker's topics, without internal ones."""
        found = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0}).list_topics(timeout=30).topics
        return sorted(name for name in found if not name.startswith("_"))

    def _rows(self, identifier: str, columns: tuple[str, str]) -> Rows:
        try:
            table = self._catalog().load_table(identifier)
        except NoSuchTableError:
            return Rows(places=frozenset(), count=0)
        read = table.scan(selected_fields=columns).to_arrow()
        partitions, offsets = (read.column(name).to_pylist() for name in columns)
        return Rows(places=frozenset(zip(partitions, offsets, strict=True)), count=read.num_rows)

    def _catalog(self) -> Any:
        key = (self.exports["AWS_ACCESS_KEY_ID"], self.exports["AWS_SECRET_ACCESS_KEY"])
        settings = {"type": "glue"}
        for service in ("glue", "s3"):
            settings[f"{service}.endpoint"] = self.exports["AWS_ENDPOINT_URL"]
            settings[f"{service}.region"] = DEV.region
            settings[f"{service}.access-key-id"], settings[f"{service}.secret-access-key"] = key
        return load_catalog("demo", **settings)
