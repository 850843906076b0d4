"""A cloud of stand-ins to which Terraform deploys the environment `local`, as from a checkout."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import boto3
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from frazil.local.services import LocalServices, world
from frazil.release.manifest import Architecture, Role, manifest
from stacks.spec.deployments import DEPLOYMENTS
from tests.stacks.synthesised import release
from tests.standin.aws.launch import endpoint_of, key_files, with_aws
from tests.standin.terraform import stand_in_settings
from tests.support.provider_log import LOGGED, actions
from tests.support.registry_admin import RegistryAdmin
from tests.support.standin import Terraform

LOCAL = DEPLOYMENTS["local"]
CLICK = '{"type":"record","name":"Click","fields":[{"name":"at","type":"long"},{"name":"note","type":"string","default":"${x}"}]}'
OTHERS = ("views",)
"""Topics of other teams, which Tableflow lands."""

_DECLARED = """
from frazil.declaration import ErrorMode, Pipeline, Table, Tableflow, Topic
from infra.confluent.managed_topic import ManagedTopic, SchemaFormat, ValueSchema

AVRO = "avro"
pipelines = [
    Pipeline(topic=Topic("flights", value=AVRO), table=Table("nyc.flights")),
    Pipeline(topic=Topic("planes", value=AVRO), table=Table("nyc.planes")),
    Pipeline(topic=Topic("clicks", value=AVRO), table=Table("flow.clicks"), engine=Tableflow()),
    Pipeline(
        topic=Topic("views", value=AVRO),
        on_error=ErrorMode.SUSPEND,
        table=Table("flow.views"),
        engine=Tableflow(),
    ),
]
topics = [
    ManagedTopic("flights", partitions=PARTITIONS),
    ManagedTopic("clicks", partitions=3, schema=ValueSchema(format=SchemaFormat.AVRO, file="clicks.avsc")),
]
"""

_APP = """
from dataclasses import replace

from infra.capacity import Capacity
from stacks.spec.deployments import SMALL, Application, Architecture, Emr, local
from stacks.workflow.program import run

run(replace(local, CHANGES), release="none")
"""


@dataclass(frozen=True, kw_only=True)
class Cloud:
    """The stand-ins of one test, and the folder in which the environment is synthesised and deployed."""

    root: Path
    folder: Path
    world: LocalServices
    terraform: Terraform
    asked_for: dict[str, str] = field(default_factory=dict)
    """The variables of the last synthesis."""
    asked: set[str] = field(default_factory=set)
    """What Terraform has asked of AWS so far, as IAM's actions."""

    def declare(
        self,
        *,
        partitions: int = 6,
        schema: str = CLICK,
        destroy: str = "",
        more: str = "",
        deployment: str = "",
        pipelines: str = _DECLARED,
        is_first: bool = False,
    ) -> None:
        """Synthesise. `partitions`: of the topic flights. `destroy`: the second key, an environment's name. `more`: Python that
        changes what is declared. `deployment`: fields of the deployment that differ, as Python. `pipelines`: the file of
        pipelines. `is_first`: without a release. Raises `CalledProcessError` when it is refused."""
        file, told = self.folder / "pipelines.py", self.folder / "release.json"
        file.write_text(pipelines.replace("PARTITIONS", str(partitions)) + more)
        (self.folder / "clicks.avsc").write_text(schema)
        told.write_bytes(manifest(release(Architecture.X86_64)))
        asked = {
            "CDKTF_OUTDIR": str(self.folder / "cdktf.out"),
            "FRAZIL_ENVIRONMENTS": "local",
            "FRAZIL_PIPELINES": str(file),
            "FRAZIL_RELEASE": "none" if is_first else str(told),
            "FRAZIL_DEPLOYED": str(self.folder / "deployed"),
            "FRAZIL_DESTROY_DATA": destroy,
        }
        (self.folder / "app.py").write_text(_APP.replace("CHANGES", deployment))
        self._ran(self.root, asked, check=True)
        del asked["CDKTF_OUTDIR"]
        self.asked_for.update(asked)

    def deploy(self, what: str, *options: str) -> tuple[int, str]:
        """Plan, review and apply what was declared, as `frazil deploy up` does for one stack. Return the exit code and the output."""
        ended = self._ran(self.folder, self.asked_for, "deploy", "local", what, "--yes", *options)
        return ended.returncode, ended.stdout + ended.stderr

    def _ran(
        self, folder: Path, variables: Mapping[str, str], *arguments: str, check: bool = False
    ) -> subprocess.CompletedProcess[str]:
        given = {**os.environ, **self.terraform.settings, **self.settings, **variables, "PYTHONPATH": str(self.root)}
        command = [sys.executable, str(self.folder / "app.py"), *arguments]
        return subprocess.run(command, cwd=folder, env=given, check=check, timeout=600, text=True, capture_output=True)

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """The variables of Terraform and synthesis."""
        pair = key_files(self.world.home).credentials()
        return {
            **stand_in_settings(self.world),
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": pair.access_key,
            "AWS_SECRET_ACCESS_KEY": pair.secret_key,
        }

    @property
    def endpoint(self) -> str:
        return endpoint_of(self.world.home)

    @property
    def organization(self) -> dict[str, dict[str, dict[str, Any]]]:
        """The resources of Confluent's stand-in, by kind and id."""
        told: dict[str, dict[str, dict[str, Any]]] = json.loads(self.organization_file.read_text())
        return told

    @property
    def organization_file(self) -> Path:
        return Path(self.settings["CONFLUENT_STANDIN_STATE"])

    def state_file(self, what: str) -> Path:
        """Return the path of a stack's Terraform state."""
        return self.folder / ".frazil" / "terraform" / "local" / f"{what}.tfstate"

    def stack(self, what: str) -> dict[str, Any]:
        """Read a synthesised stack."""
        told: dict[str, Any] = json.loads((self._at(what) / "cdk.tf.json").read_text())
        return told

    def run(self, what: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Terraform in a stack's folder."""
        if not (self._at(what) / ".terraform").exists():
            self.terraform.prepare(self._at(what))
        if what == "ingestion":
            self._upload_program()
        wanted, log = (*arguments, "-input=false", "-no-color"), self.folder / "provider.log"
        ended = self.terraform.run(self._at(what), *wanted, **self.settings, **LOGGED, TF_LOG_PATH=str(log))
        if log.exists():  # it is long: what is wanted of it is kept, and no more
            self.asked.update(actions(log))
            log.unlink()
        return ended

    def _upload_program(self) -> None:
        """Upload the reconciler's program of the release, as `frazil release upload` does."""
        told = release(Architecture.X86_64).the(Role.RECONCILER)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("a.py", "")
        self.aws("s3").put_object(Bucket=LOCAL.names.bucket("artifacts"), Key=told.key, Body=packed.getvalue())

    def apply(self, what: str, *arguments: str) -> str:
        """Apply a stack and return the output. Fails the test on an error."""
        ended = self.run(what, "apply", "-auto-approve", *arguments)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def plan(self, what: str, *arguments: str) -> tuple[int, str]:
        """Plan a stack. Return the exit code (0 no changes, 1 error, 2 changes) and the output."""
        ended = self.run(what, "plan", "-detailed-exitcode", *arguments)
        return ended.returncode, ended.stdout + ended.stderr

    def aws(self, service: str) -> Any:
        """Return a client of the local AWS."""
        return boto3.session.Session().client(
            service,
            endpoint_url=self.endpoint,
            region_name=LOCAL.region,
            aws_access_key_id=self.settings["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.settings["AWS_SECRET_ACCESS_KEY"],
        )

    @cached_property
    def kafka(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.world.bootstrap})

    def partitions(self) -> dict[str, int]:
        """Return the existing topics with their partitions."""
        topics = self.kafka.list_topics(timeout=20).topics
        return {name: len(topic.partitions) for name, topic in topics.items() if not name.startswith("_")}

    def make_topic(self, name: str) -> None:
        """Create a topic that Terraform does not manage."""
        self.kafka.create_topics([NewTopic(name, 2)], operation_timeout=20)[name].result()

    def delete_topics(self, *names: str) -> None:
        """Delete topics behind Terraform's back."""
        for ended in self.kafka.delete_topics(list(names), operation_timeout=20).values():
            ended.result()

    def setting(self, topic: str, name: str) -> str:
        """Return a setting of a topic."""
        asked = ConfigResource(ResourceType.TOPIC, topic)
        return str(self.kafka.describe_configs([asked])[asked].result()[name].value)

    @cached_property
    def registry(self) -> RegistryAdmin:
        return RegistryAdmin(self.world.registry_url)

    def schemas(self, subject: str) -> list[int]:
        """Return the numbers of a subject's versions; none if it does not exist."""
        try:
            with urlopen(f"{self.world.registry_url}/subjects/{subject}/versions", timeout=20) as answer:
                return [int(each) for each in json.load(answer)]
        except HTTPError as refused:
            if refused.code == 404:
                return []
            raise

    def _at(self, what: str) -> Path:
        return self.folder / "cdktf.out" / "stacks" / f"local-{what}"


@contextmanager
def cloud(root: Path, folder: Path, terraform: Terraform) -> Iterator[Cloud]:
    """Start a cloud without deployments. It has topics of other teams, with their schemas."""
    with world(folder, compatibility="BACKWARD") as running:
        with_aws(running)
        made = Cloud(root=root, folder=folder, world=running, terraform=terraform)
        for name in OTHERS:
            made.make_topic(name)
            made.registry.register(f"{name}-value", CLICK)
        yield made
