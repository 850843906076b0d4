"""The foundation stack, which outlives pipelines: key, buckets, catalog, network, application, logs, the topic of alarms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from frazil.declaration import Pipeline
from frazil.rollout.worker_sizes import Workers
from infra.alarms import AlarmTopic
from infra.job_network import JobNetwork, job_network
from infra.kms_key import LakeKey
from infra.protection import Protection
from infra.spark_application import SparkApplication
from infra.table_catalog import TableCatalog
from infra.tf import CloudwatchLogGroup, Construct
from policies.documents import fill
from stacks.deployments import Deployment
from stacks.flow_logs import declare_flow_logs, has_flow_logs
from stacks.groups import groups_of
from stacks.lake_buckets import declare_buckets
from stacks.providers import EnvironmentStack

JOBS = ("ingest", "maintain")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundationOutputs:
    """The values that other stacks need. Names are known before the deployment, ids and ARNs after it."""

    table_bucket: str
    tableflow_bucket: str
    artifact_bucket: str
    log_bucket: str
    key_arn: str
    application_id: str
    alarm_topic_arn: str


class Foundation(EnvironmentStack):
    """The foundation stack. It changes rarely and holds data."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        pipelines: Sequence[Pipeline],
        *,
        protection: Protection,
        today: date,
    ) -> None:
        super().__init__(scope, "foundation", deployment, has_confluent=False)
        names = deployment.names
        existing = deployment.existing
        key_arn = existing.key_arn or self._key(deployment, protection)
        declare_buckets(self, deployment, pipelines, key_arn, protection)
        namespaces = {p.table.namespace for p in pipelines} - {*existing.databases}
        TableCatalog(self, "catalog", namespaces=namespaces, protection=protection)
        for job in JOBS:
            CloudwatchLogGroup(
                self,
                f"{job}-log",
                name=names.log_group(job),
                retention_in_days=offered_days(deployment.log_days),
                kms_key_id=key_arn,
            )
        network = job_network(self, "network", deployment.network, deployment.region)
        if isinstance(network, JobNetwork) and has_flow_logs(deployment.network):
            days = offered_days(deployment.log_days)
            declare_flow_logs(self, deployment, vpc_id=network.vpc_id, key_arn=key_arn, log_days=days)
        application = SparkApplication(
            self,
            "spark",
            prefix=names.prefix,
            release_label=deployment.label,
            architecture=deployment.architecture,
            capacity=deployment.runs.capacity,
            jobs=workers_of(deployment, pipelines),
            idle_minutes=deployment.runs.idle_minutes,
            subnet_ids=network.subnet_ids,
            security_group_ids=network.security_group_ids,
            today=today,
        )
        alarms = AlarmTopic(self, "alarms", topic=names.prefix, key_arn=key_arn, emails=deployment.alarm_emails)
        self.outputs = FoundationOutputs(
            table_bucket=names.bucket("tables"),
            tableflow_bucket=names.bucket("tableflow"),
            artifact_bucket=names.bucket("artifacts"),
            log_bucket=names.bucket("logs"),
            key_arn=key_arn,
            application_id=application.id,
            alarm_topic_arn=alarms.arn,
        )

    def _key(self, deployment: Deployment, protection: Protection) -> str:
        names = deployment.names
        where = {"account": deployment.account, "region": deployment.region}
        policy = fill("lake_key", {**where, "log_groups": [names.log_group("")]}, partition=names.partition)
        return LakeKey(self, "key", alias=names.prefix, policy=policy, protection=protection).arn


# The retention times that CloudWatch Logs offers (PutRetentionPolicy, retentionInDays).
_OFFERED_DAYS = (
    1,
    3,
    5,
    7,
    14,
    30,
    60,
    90,
    120,
    150,
    180,
    365,
    400,
    545,
    731,
    1096,
    1827,
    2192,
    2557,
    2922,
    3288,
    3653,
)


def offered_days(wanted: int) -> int:
    """Return the shortest retention that CloudWatch Logs offers and that is long enough."""
    return next(days for days in _OFFERED_DAYS if days >= wanted)


def workers_of(deployment: Deployment, pipelines: Sequence[Pipeline]) -> tuple[Workers, ...]:
    """Return the workers of all jobs of an environment; those of its defaults if no job lands a pipeline."""
    jobs = [deployment.jobs_of(group.name) for group in groups_of(pipelines)] or [deployment.runs]
    return tuple(workers for each in jobs for workers in (each.ingest, each.maintain))
