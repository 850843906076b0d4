"""Limits of AWS and Confluent: what fits is synthesised, what does not is refused with the reason."""

from __future__ import annotations

from frazil.declaration import Pipeline, Table, Topic, ValueFormat
from policies.documents import MANAGED_LIMIT, characters
from stacks.account_setup import boundary
from stacks.deployments import DEPLOYMENTS
from stacks.quotas import exceeded

DEV = DEPLOYMENTS["dev"]


def in_namespaces(count: int) -> list[Pipeline]:
    return [
        Pipeline(
            topic=Topic(f"t{number}", value_format=ValueFormat.AVRO), table=Table(f"sales_of_region_{number:03}.t")
        )
        for number in range(count)
    ]


def test_forty_namespaces_fit_the_boundary() -> None:
    assert characters(boundary(DEV, in_namespaces(40))) <= MANAGED_LIMIT
    assert not list(exceeded(DEV, in_namespaces(40)))


def test_a_boundary_that_iam_would_refuse_is_refused_at_synthesis() -> None:
    [problem] = exceeded(DEV, in_namespaces(80))
    assert problem.path == "pipelines"
    assert "boundary-frazil-dev would have " in problem.what
    assert "80 namespaces; IAM's limit is 6,144 (https://docs.aws.amazon.com/IAM/" in problem.what
