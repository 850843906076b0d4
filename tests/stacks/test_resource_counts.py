"""How many resources a pipeline and a group have: what grows with the number of pipelines."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from infra.capacity import Capacity
from infra.confluent.managed_topic import ManagedTopic
from tests.stacks.spec.test_groups import DEV, of
from tests.stacks.synthesised import named, synthesised


def counted(pipelines: int, groups: int, **confluent: Any) -> Counter[str]:
    """The resources of an environment with so many pipelines in so many groups, by type; each has a topic and a value schema."""
    declared = [
        of(f"team-{number % groups}", f"team.t{number}", f"team_{number % groups}.t{number}")
        for number in range(pipelines)
    ]
    room = Capacity(cores=640, memory_gb=2560, disk_gb=40_000)
    deployment = named(DEV, confluent=replace(DEV.confluent, **confluent), runs=replace(DEV.runs, capacity=room))
    stacks = synthesised(deployment, declared, [ManagedTopic(each.topic.name) for each in declared])
    found: Counter[str] = Counter()
    for stack in stacks.values():
        found.update({kind: len(made) for kind, made in stack["resource"].items()})
    return found


def test_a_pipeline_has_a_topic_an_acl_and_a_binding_and_nothing_else() -> None:
    more = counted(24, 3)
    more.subtract(counted(12, 3))
    assert {kind: number for kind, number in more.items() if number} == {
        "confluent_kafka_topic": 12,
        "confluent_kafka_acl": 12,
        "confluent_role_binding": 12,
    }


@pytest.mark.long
def test_with_a_prefix_a_pipeline_has_a_topic_and_an_acl() -> None:
    more = counted(24, 3, subject_prefixes=("team.",))
    more.subtract(counted(12, 3, subject_prefixes=("team.",)))
    assert {kind: number for kind, number in more.items() if number} == {
        "confluent_kafka_topic": 12,
        "confluent_kafka_acl": 12,
    }


@pytest.mark.long
def test_a_group_has_so_many_resources_of_its_own() -> None:
    more = counted(12, 4)
    more.subtract(counted(12, 3))
    assert {kind: number for kind, number in more.items() if number} == {
        "aws_cloudwatch_event_rule": 1,
        "aws_cloudwatch_event_target": 1,
        "aws_cloudwatch_log_group": 3,
        "aws_cloudwatch_metric_alarm": 10,
        "aws_glue_catalog_database": 1,  # its namespace
        "aws_iam_policy": 3,
        "aws_iam_role": 3,
        "aws_iam_role_policy_attachment": 3,
        "aws_lambda_function": 1,
        "aws_lambda_permission": 1,
        "aws_s3_object": 2,
        "aws_scheduler_schedule": 3,
    }
