"""Constructs, each by itself; what they make together is in tests/stacks."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from frazil.declaration import Pipeline, Table, Topic, parse
from frazil.errors import FrazilError
from frazil.release.manifest import Architecture
from infra import tf
from infra.capacity import Capacity
from infra.job_network import JobNetwork
from infra.network_plan import NetworkPlan
from infra.schedules import Schedule
from infra.spark_application import SparkApplication
from infra.tf import TerraformStack
from stacks.stacks.landing_jobs import PipelineDocument

FOUNDATION: Any = SimpleNamespace(artifact_bucket="b", key_arn="arn:key")


def made(make: Callable[[TerraformStack], Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """The resources of a stack in which `make` has put something."""
    stack = TerraformStack(tf.Testing.app(), "s")
    make(stack)
    found: dict[str, dict[str, dict[str, Any]]] = json.loads(tf.Testing.synth(stack))["resource"]
    return found


def application(**changed: Any) -> Callable[[TerraformStack], SparkApplication]:
    told: dict[str, Any] = {
        "application": "frazil-dev-emr-spark-8-1-0-arm64",
        "release_label": "emr-spark-8.1.0",
        "architecture": Architecture.ARM64,
        "capacity": Capacity(cores=6, memory_gb=24, disk_gb=120),
        "idle_minutes": 15,
        "subnet_ids": ["subnet-1"],
        "security_group_ids": ["sg-1"],
    }
    return lambda stack: SparkApplication(stack, "spark", **{**told, **changed})


def test_a_label_that_no_release_is_made_for_is_refused() -> None:
    with pytest.raises(FrazilError, match=r"emr-7\.0\.0"):
        made(application(release_label="emr-7.0.0"))


def test_by_nat_jobs_have_a_way_out_and_none_in() -> None:
    found = made(lambda stack: JobNetwork(stack, "network", plan=NetworkPlan(cidr="10.0.0.0/20"), region="eu-west-1"))
    assert len(found["aws_nat_gateway"]) == 1
    routes = {
        (each.get("gateway_id") is not None, each.get("nat_gateway_id") is not None)
        for each in found["aws_route"].values()
    }
    assert routes == {(True, False), (False, True)}
    assert all("map_public_ip_on_launch" not in each for each in found["aws_subnet"].values())


def test_a_document_holds_its_pipelines_whatever_is_written_in_them() -> None:
    odd = Pipeline(topic=Topic("a", value="avro"), table=Table("s.a", properties={"comment": "100 %{x}"}))
    found = made(lambda stack: PipelineDocument(stack, "d", pipelines=[odd], foundation=FOUNDATION))
    [told] = found["aws_s3_object"].values()
    content = told["content"].replace("%%{", "%{")
    assert "%%{x}" in told["content"]
    assert parse(content.encode()) == (odd,)


def test_a_call_that_fails_for_as_long_as_its_interval_is_left_to_the_next_one() -> None:
    found = made(
        lambda stack: Schedule(
            stack,
            "s",
            schedule="x",
            group="g",
            expression="rate(15 minutes)",
            target_arn="arn:target",
            request='{"ApplicationId": "1"}',
            role_arn="arn:role",
            minutes=15,
            after=(),
        )
    )
    [told] = found["aws_scheduler_schedule"].values()
    assert json.loads(told["target"]["input"]) == {"ApplicationId": "1"}
    assert told["target"]["retry_policy"]["maximum_event_age_in_seconds"] == 900
