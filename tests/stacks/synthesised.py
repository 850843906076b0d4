"""Stacks as their JSON, synthesised once a process and environment; and the goldens.

python -m tests.stacks.synthesised     writes the goldens again
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from frazil.declaration import ErrorMode, Pipeline, Table, Tableflow, Topic
from frazil.release.emr_labels import NEWEST
from frazil.release.manifest import Architecture, File, Release, Role, Runtime
from infra.confluent.managed_topic import ManagedTopic, SchemaFormat, ValueSchema
from infra.tf import App
from stacks.spec.deployments import DEPLOYMENTS, Access, Deployment, Existing, Workgroup, dev
from stacks.stacks.compose import compose

GOLDEN = Path(__file__).parent / "golden"
TODAY = date(2026, 11, 1)
STACKS = ("foundation", "confluent", "ingestion")
FLOWING = "flowing"
"""Not an environment: dev with pipelines that Tableflow lands, which the example has none of."""
GOVERNED = "governed"
"""Not an environment: dev with what an account may prescribe or wish: tags, a path in IAM, grants, a workgroup, flow logs."""

AVRO_TEXT = '{"type":"record","name":"Click","fields":[{"name":"at","type":"long"},{"name":"note","type":"string","default":"${x}"}]}'

EXAMPLE = (
    Pipeline(topic=Topic("flights", value="avro"), table=Table("nyc.flights")),
    Pipeline(topic=Topic("planes", value="protobuf", key="avro"), table=Table("nyc.planes")),
)
EXAMPLE_TOPICS = (ManagedTopic("flights", partitions=6), ManagedTopic("planes", partitions=1))
FLOWING_PIPELINES = (
    Pipeline(topic=Topic("clicks", value="avro"), table=Table("flow.clicks"), engine=Tableflow()),
    Pipeline(
        topic=Topic("views", value="avro"),
        on_error=ErrorMode.SUSPEND,
        table=Table("flow.views"),
        engine=Tableflow(),
    ),
)
FLOWING_TOPICS = (ManagedTopic("clicks", schema=ValueSchema(format=SchemaFormat.AVRO, file="clicks.avsc")),)


GOVERNED_DEV = replace(
    dev,
    network=replace(dev.network, flow_logs=True),
    existing=Existing(iam_path="/data/", tags={"cost-centre": "4711"}),
    access=Access(
        lake_formation=True,
        readers=(f"arn:aws:iam::{dev.account}:role/analysts",),
        athena_workgroup=Workgroup(most_scanned_gb=100),
    ),
)


def release(architecture: Architecture) -> Release:
    """A release that nobody built."""
    roles = (Role.PACKAGE, Role.ENVIRONMENT, Role.INGEST, Role.MAINTAIN, Role.JAR, Role.BILL, Role.RECONCILER)
    names = (
        "frazil-1.0.0.zip",
        "environment.tar.gz",
        "ingest.py",
        "maintain.py",
        "iceberg.jar",
        "bill.json",
        "reconciler.zip",
    )
    files = tuple(
        File(name=name, role=role, sha256=str(number) * 64, size_bytes=1)
        for number, (name, role) in enumerate(zip(names, roles, strict=True), 1)
    )
    return Release(
        version="1.0.0",
        git_commit="a" * 40,
        is_dirty=False,
        label=NEWEST,
        architecture=architecture,
        runtime=Runtime(python="3.11", spark="4.1.1", iceberg="1.11.0", classes=("org.apache.iceberg.Table",)),
        files=files,
    )


def every_stack(
    deployment: Deployment,
    pipelines: Sequence[Pipeline] = EXAMPLE,
    topics: Sequence[ManagedTopic] = EXAMPLE_TOPICS,
    **more: Any,
) -> dict[str, dict[str, Any]]:
    """The JSON of all stacks, also of the owner's, by their names without the environment's."""
    arguments = {
        "text_of": lambda file: AVRO_TEXT,
        "release": release(deployment.emr.architecture),
        **more,
    }
    with TemporaryDirectory() as folder:
        app = App(outdir=folder)
        compose(app, deployment, pipelines, topics, **arguments)
        app.synth()
        files = sorted(Path(folder).glob("stacks/*/cdk.tf.json"))
        return {file.parent.name.removeprefix(f"{deployment.name}-"): json.loads(file.read_text()) for file in files}


def synthesised(deployment: Deployment, *given: Any, **more: Any) -> dict[str, dict[str, Any]]:
    """The JSON of each stack of an environment, in the order of their deployment."""
    found = every_stack(deployment, *given, **more)
    return {what: found[what] for what in (*STACKS, *(each for each in found if each.startswith("ingestion-")))}


@cache
def stacks_of(name: str) -> dict[str, dict[str, Any]]:
    """The stacks of an environment, or of what is none."""
    # The stand-ins' address must not depend on the shell that runs the tests.
    for variable in ("AWS_ENDPOINT_URL", "LOCALSTACK_HOST", "USE_SSL"):
        os.environ.pop(variable, None)
    if name == FLOWING:
        return synthesised(DEPLOYMENTS["dev"], (*EXAMPLE, *FLOWING_PIPELINES), (*EXAMPLE_TOPICS, *FLOWING_TOPICS))
    if name == GOVERNED:
        return synthesised(GOVERNED_DEV, (*EXAMPLE, *FLOWING_PIPELINES), (*EXAMPLE_TOPICS, *FLOWING_TOPICS))
    return synthesised(DEPLOYMENTS[name])


ALL = [(name, what) for name in (*DEPLOYMENTS, FLOWING) for what in STACKS]


GOLDENS = [(name, what) for name, what in ALL if (name, what) != (FLOWING, "ingestion")]
"""Tableflow has no part in ingestion."""
GOLDENS += [(GOVERNED, what) for what in STACKS]


def canonical(stack: Any) -> Any:
    """A stack without what the CDK notes for itself, and with policies as JSON instead of as text."""
    if isinstance(stack, dict):
        return {key: canonical(part) for key, part in stack.items() if key != "//"}
    if isinstance(stack, list):
        return [canonical(part) for part in stack]
    if isinstance(stack, str) and stack.startswith("{"):
        try:
            return {"(text)": canonical(json.loads(stack))}
        except ValueError:
            return stack
    return stack


def golden(name: str, what: str) -> str:
    """The text of a golden file."""
    return json.dumps(canonical(stacks_of(name)[what]), indent=1, sort_keys=True) + "\n"


def resources(stack: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """The resources of a type, by name."""
    found: dict[str, dict[str, Any]] = stack.get("resource", {}).get(kind, {})
    return found


def named(deployment: Deployment, **changed: Any) -> Deployment:
    """A deployment with something changed."""
    return replace(deployment, **changed)


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for stale in GOLDEN.glob("*.json"):
        stale.unlink()
    for environment, part in GOLDENS:
        (GOLDEN / f"{environment}-{part}.json").write_text(golden(environment, part))
