"""How many resources a pipeline has: what grows with the number of pipelines."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from infra.capacity import Capacity
from infra.confluent.managed_topic import ManagedTopic
from tests.stacks.spec.test_groups import DEV, of
from tests.stacks.synthesised import named, synthesised


def counted(pipelines: int) -> Counter[str]:
    """The resources of an environment with so many pipelines in three groups, by type; each has a topic and a value schema."""
    declared = [of(f"team-{n % 3}", f"team.t{n}", f"team_{n % 3}.t{n}") for n in range(pipelines)]
    room = Capacity(cores=640, memory_gb=2560, disk_gb=40_000)
    deployment = named(DEV, runs=replace(DEV.runs, capacity=room))
    stacks = synthesised(deployment, declared, [ManagedTopic(each.topic.name) for each in declared])
    return Counter(kind for stack in stacks.values() for kind, made in stack["resource"].items() for _ in made)


def test_a_pipeline_has_a_topic_an_acl_and_a_binding_and_nothing_else() -> None:
    more = counted(24)
    more.subtract(counted(12))
    assert {kind: number for kind, number in more.items() if number} == {
        "confluent_kafka_topic": 12,
        "confluent_kafka_acl": 12,
        "confluent_role_binding": 12,
    }
