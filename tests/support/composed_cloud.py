"""Stacks of the environment `local` with changed settings, composed here and applied to a cloud's stand-ins.

They share the foundation of the cloud; the organization at Confluent is one of their own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from frazil.declaration import Pipeline
from infra.confluent.managed_topic import ManagedTopic
from infra.tf import App
from stacks.spec.deployments import Confluent
from stacks.stacks.compose import compose
from tests.support.standin_cloud import CLICK, LOCAL, Cloud

SHARED = {"environment": [{"id": "env-shared"}], "cloud": "AWS", "region": LOCAL.region}


@dataclass(frozen=True, kw_only=True)
class ComposedCloud:
    """The stack `confluent` in a folder of its own."""

    cloud: Cloud
    folder: Path

    def declare(
        self, confluent: Confluent, pipelines: Sequence[Pipeline], topics: Sequence[ManagedTopic], **more: Any
    ) -> None:
        """Synthesise all stacks."""
        address = {"AWS_ENDPOINT_URL": self.cloud.endpoint}
        before = {name: os.environ.get(name) for name in address}
        os.environ.update(address)
        try:
            app = App(outdir=str(self.folder / "cdktf.out"))
            deployment = replace(LOCAL, confluent=confluent)
            compose(app, deployment, pipelines, topics, text_of=lambda file: CLICK, **more)
            app.synth()
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})

    @property
    def stack(self) -> Path:
        return self.folder / "cdktf.out" / "stacks" / "local-confluent"

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Terraform on the stack."""
        if not (self.stack / ".terraform").exists():
            self.cloud.terraform.prepare(self.stack)
        return self.cloud.terraform.run(self.stack, *arguments, "-input=false", "-no-color", **self.settings)

    def apply(self) -> str:
        """Apply the stack. Fails the test on an error."""
        ended = self.run("apply", "-auto-approve")
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    @property
    def settings(self) -> Mapping[str, str]:
        return {**self.cloud.settings, "CONFLUENT_STANDIN_STATE": str(self.folder / "organization.json")}

    @property
    def organization(self) -> dict[str, dict[str, dict[str, Any]]]:
        """The resources of Confluent's stand-in, by kind and id."""
        told: dict[str, dict[str, dict[str, Any]]] = json.loads((self.folder / "organization.json").read_text())
        return told


def composed(cloud: Cloud, folder: Path) -> ComposedCloud:
    """Return a cloud whose organization has an environment and a cluster of others, `env-shared` and `lkc-shared`."""
    state = folder / ".frazil" / "terraform" / "local"
    state.mkdir(parents=True)
    shutil.copy(cloud.state_file("foundation"), state)
    others = {
        "environment": {"env-shared": {"display_name": "shared"}},
        "kafka_cluster": {"lkc-shared": {"display_name": "shared", "availability": "HIGH", **SHARED}},
        "schema_registry_cluster": {"lsrc-shared": {"display_name": "shared", "package": "ADVANCED", **SHARED}},
    }
    (folder / "organization.json").write_text(json.dumps(others))
    return ComposedCloud(cloud=cloud, folder=folder)
