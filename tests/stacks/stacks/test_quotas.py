"""Limits of AWS and Confluent: what fits is synthesised, what does not is refused with the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from frazil.declaration import Pipeline, Problem, Spark, Table, Topic
from infra.alarms import GROUP_ALARMS, PIPELINE_ALARMS
from infra.confluent.managed_topic import ManagedTopic
from policies.documents import MANAGED_LIMIT, characters
from stacks.spec.deployments import DEPLOYMENTS, AlarmsOf, ClusterKind, Deployment, Monitoring
from stacks.stacks.account_setup import boundary
from stacks.stacks.quotas import exceeded
from tests.stacks.synthesised import EXAMPLE, named, resources, synthesised

DEV = DEPLOYMENTS["dev"]


def in_namespaces(count: int) -> list[Pipeline]:
    return [
        Pipeline(topic=Topic(f"t{number}", value="avro"), table=Table(f"sales_of_region_{number:03}.t"))
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


def many(count: int, *, groups: int = 1, prefix: str = "t", namespace: str = "s") -> list[Pipeline]:
    """Pipelines of one namespace, in groups of equal size; with one group, in none."""
    return [
        Pipeline(
            topic=Topic(f"{prefix}{number}", value="avro"),
            table=Table(f"{namespace}.t{number}"),
            name=f"p{number}",
            engine=Spark(group=f"g{number % groups}" if groups > 1 else None),
        )
        for number in range(count)
    ]


def on(deployment: Deployment = DEV, **confluent: Any) -> Deployment:
    return named(deployment, confluent=replace(deployment.confluent, **confluent))


def only(problems: Any) -> Problem:
    [problem] = problems
    assert isinstance(problem, Problem)
    assert "https://" in problem.what, "the source"
    return problem


def test_partitions_beyond_the_kinds_limit_are_refused() -> None:
    topics = [ManagedTopic(f"t{number}", partitions=16) for number in range(257)]
    assert not list(exceeded(DEV, [], topics[:256]))
    problem = only(exceeded(DEV, [], topics))
    assert (problem.path, "4,112 partitions; the cluster's limit is 4,096" in problem.what) == ("topics", True)
    assert not list(exceeded(on(most_partitions=5000), [], topics))


def test_acls_beyond_the_kinds_limit_are_refused() -> None:
    """One for each topic, and one for groups: a Basic cluster has 1,000, a Standard one has more."""
    few, more = many(999, groups=4), many(1000, groups=4)
    assert not list(exceeded(on(subject_prefixes=("t-",), most_role_bindings=2000), few))
    problem = only(exceeded(on(most_role_bindings=2000), more))
    assert "1,001 ACLs; the cluster's limit is 1,000" in problem.what
    assert not list(exceeded(on(kind=ClusterKind.STANDARD, most_role_bindings=2000), more))


def test_of_an_existing_cluster_only_stated_limits_count() -> None:
    prod = on(DEPLOYMENTS["prod"], most_role_bindings=9000)
    assert not list(exceeded(prod, many(1500, groups=20), [ManagedTopic("x", partitions=4096), ManagedTopic("y")]))
    assert not list(exceeded(on(prod, most_acls=10), many(10))), "without an administrator there are no ACLs"
    assert "ACLs" in only(exceeded(on(prod, most_acls=10, is_administered=True), many(10))).what


def test_role_bindings_beyond_the_organizations_limit_are_refused() -> None:
    """One for each subject, one that waits, and two of the manager; with a prefix, one for all of its subjects."""
    assert not list(exceeded(DEV, many(997, groups=4)))
    problem = only(exceeded(DEV, many(998, groups=4)))
    assert problem.path == "deployment.confluent.subject_prefixes"
    assert (
        "1,001 role bindings would be needed, 998 of them for subjects; the limit of the organization is 1,000"
        in problem.what
    )
    assert not list(exceeded(on(subject_prefixes=("pay.",)), many(998, groups=4, prefix="pay.")))


def test_alarms_beyond_cloudwatchs_limits_are_refused() -> None:
    assert not list(exceeded(DEV, many(500)))
    assert "an alarm would watch 501 pipelines; CloudWatch's limit is 500" in only(exceeded(DEV, many(501))).what
    assert not list(exceeded(DEV, many(22, groups=22)))
    assert "23 groups would have 207 alarms on queries" in only(exceeded(DEV, many(23, groups=23))).what
    each = on(named(DEV, monitoring=Monitoring(alarms=AlarmsOf.PIPELINE)), kind=ClusterKind.STANDARD)
    assert not list(exceeded(each, many(625)))
    assert "5,008 alarms; CloudWatch's limit is 5,000" in only(exceeded(each, many(626))).what


def test_the_number_of_alarms_is_the_one_that_is_synthesised() -> None:
    for alarms, expected in ((AlarmsOf.GROUP, GROUP_ALARMS + 1), (AlarmsOf.PIPELINE, PIPELINE_ALARMS * len(EXAMPLE))):
        stack = synthesised(named(DEV, monitoring=Monitoring(alarms=alarms)))["ingestion"]
        assert len(resources(stack, "aws_cloudwatch_metric_alarm")) == expected + 3, (
            "one for the scheduler, two for the reconciler, and one more that counts silent pipelines of a group"
        )
