"""Quotas of AWS and Confluent that a deployment would exceed. An apply would fail half-way, so synthesis refuses.

Confluent's numbers are from copies of its pages, and quotas can be raised: a deployment states what its cluster really has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType

from frazil.declaration import Pipeline, Problem, Spark, Tableflow, TopicPattern
from infra.alarms import GROUP_ALARMS, PIPELINE_ALARMS
from infra.confluent.managed_topic import ManagedTopic
from infra.iam_role import QUOTAS
from policies.documents import MANAGED_LIMIT, characters
from stacks.spec.deployments import AlarmsOf, ClusterKind, Confluent, Deployment
from stacks.spec.groups import Group, groups_of, with_shared
from stacks.stacks.account_setup import boundary
from stacks.stacks.reading_rights import beginnings, patterns, prefixes_of, readable, subjects, topics_of

CLUSTERS = "https://docs.confluent.io/cloud/current/clusters/cluster-types.html"
SERVICE_QUOTAS = "https://docs.confluent.io/cloud/current/quotas/service-quotas.html"
INSIGHTS = "https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-limits.html"
CLOUDWATCH = "https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_limits.html"

PARTITIONS = MappingProxyType({ClusterKind.BASIC: 4_096, ClusterKind.STANDARD: 4_096})
ACLS = MappingProxyType({ClusterKind.BASIC: 1_000, ClusterKind.STANDARD: 4_000})
ALARMS_ON_QUERIES, SERIES, ALARMS = 200, 500, 5_000
_MANAGERS_BINDINGS = 2


def exceeded(
    deployment: Deployment,
    pipelines: Sequence[Pipeline],
    topics: Sequence[ManagedTopic] = (),
    matching: Sequence[TopicPattern] = (),
) -> Iterator[Problem]:
    """Yield each exceeded quota, with its number, its source and a remedy. `matching` are patterns of topics."""
    yield from _boundary(deployment, with_shared(pipelines, matching))
    yield from _confluent(deployment, pipelines, topics, matching)
    yield from _alarms(deployment, groups_of(pipelines, matching))


def _boundary(deployment: Deployment, pipelines: Sequence[Pipeline]) -> Iterator[Problem]:
    namespaces = {pipeline.table.namespace for pipeline in pipelines}
    is_ours = deployment.existing.boundary is None
    if is_ours and namespaces and (size := characters(boundary(deployment, pipelines))) > MANAGED_LIMIT:
        what = f"{deployment.names.boundary} would have {size:,} characters with {len(namespaces)} namespaces"
        do = "Use fewer or shorter namespaces, or another environment"
        yield Problem("pipelines", f"{what}; IAM's limit is {MANAGED_LIMIT:,} ({QUOTAS})", do)


def _confluent(
    deployment: Deployment,
    pipelines: Sequence[Pipeline],
    topics: Sequence[ManagedTopic],
    matching: Sequence[TopicPattern],
) -> Iterator[Problem]:
    chosen = deployment.confluent
    kind = chosen.kind if chosen.is_managed else None  # of an existing cluster, only the deployment knows
    read = [pipeline for pipeline in pipelines if isinstance(pipeline.engine, Spark)]
    partitions = sum(topic.partitions for topic in topics)
    most = chosen.most_partitions or PARTITIONS.get(kind) if kind else chosen.most_partitions
    if most and partitions > most:
        what = f"the topics would have {partitions:,} partitions; the cluster's limit is {most:,} ({CLUSTERS})"
        yield Problem("topics", what, "Declare fewer partitions, or write most_partitions if Confluent allows more")
    acls = (
        len(topics_of(read)) + len(beginnings(prefixes_of(matching), ())) + 1
        if chosen.has_admin and not chosen.reader_secret
        else 0
    )
    most = chosen.most_acls or ACLS.get(kind) if kind else chosen.most_acls
    if most and acls > most:
        what = f"the jobs' account would need {acls:,} ACLs; the cluster's limit is {most:,} ({CLUSTERS})"
        yield Problem("pipelines", what, "Use another cluster, or write most_acls if Confluent allows more")
    wanted = [] if chosen.reader_secret else subjects(read, chosen.subject_prefixes, matching)
    flows = any(isinstance(pipeline.engine, Tableflow) for pipeline in pipelines)
    others = _MANAGERS_BINDINGS + flows if chosen.has_admin else _shared(chosen, read, topics, matching)
    bindings = len(wanted) + bool(wanted) + others
    if bindings > chosen.most_role_bindings:
        what = f"{bindings:,} role bindings would be needed, {len(wanted):,} of them for subjects"
        limit = f"the limit of the organization is {chosen.most_role_bindings:,} ({SERVICE_QUOTAS})"
        prefixes = "subject_prefixes" if chosen.has_admin else "subject_prefixes and topic_prefixes"
        do = f"Write {prefixes}, or most_role_bindings if Confluent allows more"
        yield Problem("deployment.confluent.subject_prefixes", f"{what}; {limit}", do)


def _shared(
    chosen: Confluent, read: Sequence[Pipeline], topics: Sequence[ManagedTopic], matching: Sequence[TopicPattern]
) -> int:
    """Return the number of bindings on topics, and of the manager's on subjects, on a cluster of others."""
    sets = []
    if not chosen.reader_secret:
        sets.append(readable(read, matching, chosen.topic_prefixes))
    if not chosen.manager_secret:
        sets.append(patterns((own.name for own in topics), chosen.topic_prefixes))
        sets.append(patterns((f"{own.name}-value" for own in topics if own.schema), chosen.subject_prefixes))
    groups = 0 if chosen.reader_secret else 1
    return groups + sum(len(each) + bool(each) for each in sets)


def _alarms(deployment: Deployment, groups: Sequence[Group]) -> Iterator[Problem]:
    if deployment.monitoring.alarms is AlarmsOf.PIPELINE:
        alarms = PIPELINE_ALARMS * sum(len(group.pipelines) for group in groups)
        if alarms > ALARMS:
            what = f"the pipelines would have {alarms:,} alarms; CloudWatch's limit is {ALARMS:,} ({CLOUDWATCH})"
            yield Problem(
                "deployment.monitoring.alarms", what, "Write AlarmsOf.GROUP, or raise the quota of the account"
            )
        return
    if (alarms := GROUP_ALARMS * len(groups)) > ALARMS_ON_QUERIES:
        what = f"{len(groups)} groups would have {alarms} alarms on queries; CloudWatch's limit is {ALARMS_ON_QUERIES}"
        yield Problem("pipelines", f"{what} ({INSIGHTS})", "Use fewer groups, or write alarms=AlarmsOf.PIPELINE")
    for group in groups:
        if (series := len(group.pipelines) + sum(pattern.most for pattern in group.patterns)) > SERIES:
            what = f"{group.name or 'the pipelines without a group'}: an alarm would watch {series} pipelines"
            limit = f"CloudWatch's limit is {SERIES} ({INSIGHTS})"
            yield Problem("pipelines", f"{what}; {limit}", "Divide them into groups, or write alarms=AlarmsOf.PIPELINE")
