"""ARNs begin with the partition of the region, in every stack."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from frazil.declaration import Pipeline, Spark, Table, Topic
from frazil.rollout.desired import Mode
from infra.names import partition_of
from stacks.spec.deployments import Access, Deployment, GitHub, Monitoring, dev
from stacks.workflow.describe import described
from tests.stacks.synthesised import EXAMPLE, FLOWING_PIPELINES, every_stack

GROUPED = Pipeline(topic=Topic("x", value="avro"), table=Table("pay.x"), engine=Spark(group="pay"))
VENDOR = "role/vendor"


def with_everything(region: str) -> Deployment:
    """Return an environment in a region that uses every policy."""
    arn = f"arn:{partition_of(region)}:iam::{dev.account}"
    return replace(
        dev,
        region=region,
        runs=replace(
            dev.runs, mode=Mode.DRAIN, capacity=replace(dev.runs.capacity, cores=64, memory_gb=256, disk_gb=4000)
        ),
        access=Access(
            deployers=(f"{arn}:role/ci",),
            readers=(f"{arn}:role/analysts", f"{arn}:{VENDOR}"),
            external_ids={f"{arn}:{VENDOR}": "vendor-1"},
            reconcilers=(f"{arn}:role/operators",),
            athena_workgroup="analysts",
            github=GitHub(repository="shop/lake"),
        ),
        monitoring=Monitoring(emails=("a@example.com",)),
    )


@pytest.mark.parametrize("region", ["us-gov-west-1", "cn-north-1"])
def test_no_stack_has_an_arn_of_another_partition(region: str) -> None:
    deployment = with_everything(region)
    stacks = every_stack(deployment, (*EXAMPLE, *FLOWING_PIPELINES, GROUPED))
    assert {"owner", "foundation", "confluent", "ingestion", "ingestion-pay"} == stacks.keys()
    texts = {
        **{name: json.dumps(stack) for name, stack in stacks.items()},
        "": json.dumps(described(deployment, "none")),
    }
    for name, text in texts.items():
        assert "arn:aws:" not in text, name
        assert f"arn:{partition_of(region)}:" in text, name


def test_in_china_services_of_a_region_have_the_name_that_they_have_there() -> None:
    stacks = every_stack(with_everything("cn-north-1"))
    assert "s3.cn-north-1.amazonaws.com.cn" in json.dumps(stacks["ingestion"])
    for name in ("owner", "foundation", "ingestion"):
        assert "cn-north-1.amazonaws.com\\" not in json.dumps(stacks[name]), name
    assert '"emr-serverless.amazonaws.com' in json.dumps(stacks["ingestion"]).replace("\\", ""), "that has no region"
