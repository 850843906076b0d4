"""Every resource of every stack fits its provider's schema, which is kept as data."""

import copy

import pytest

from infra.confluent import resource
from tests.infra.aws_schema import VERSION
from tests.infra.provider_schema import misfits, schema
from tests.stacks.synthesised import ALL, GOVERNED, STACKS, resources, stacks_of


@pytest.mark.parametrize(("environment", "what"), [*ALL, *((GOVERNED, what) for what in STACKS)])
def test_a_stack_fits_the_schemas_of_its_providers(environment: str, what: str) -> None:
    assert misfits(stacks_of(environment)[what]) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda topic: topic.update(partition_count=3), "no such argument"),
        (lambda topic: topic.update(partitions_count="three"), "is no number"),
        (lambda topic: topic.update(kafka_cluster=[{"id": "a"}, {"id": "b"}]), "2 blocks, 1 at most"),
        (lambda topic: topic["kafka_cluster"].update(id=None), "required, and missing"),
        (lambda topic: topic.update(depends_on=["${confluent_environment.environment}"]), "no reference by itself"),
        (lambda topic: topic.pop("topic_name"), "required, and missing"),
        (lambda topic: topic.update(config=["retention.ms"]), "is no map"),
    ],
)
def test_what_the_schema_does_not_allow_is_told(change, told) -> None:
    stack = copy.deepcopy(stacks_of("dev")["confluent"])
    change(next(iter(resources(stack, "confluent_kafka_topic").values())))
    [found] = misfits(stack)
    assert found.startswith("confluent_kafka_topic.")
    assert told in found


def test_an_argument_that_only_the_provider_computes_is_told() -> None:
    stack = copy.deepcopy(stacks_of("dev")["foundation"])
    next(iter(resources(stack, "aws_kms_key").values()))["arn"] = "arn:aws:kms:::key/1"
    assert len(misfits(stack)) == 1


def test_the_kept_schemas_are_of_the_versions_that_stacks_ask_for() -> None:
    stack = stacks_of("dev")["confluent"]["terraform"]["required_providers"]
    assert stack["aws"] == {"source": "aws", "version": VERSION}
    assert stack["confluent"] == {"source": resource.SOURCE, "version": schema("confluent")["version"]}
    assert schema("confluent")["version"] == resource.VERSION
