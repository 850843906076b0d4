"""The foundation stack, which outlives pipelines: key, buckets, catalog, network, application, logs, the topic of alarms."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from frazil.declaration import Pipeline, Tableflow
from frazil.rollout.desired import INGEST, MAINTAIN, Workers, job_name
from frazil.rollout.run_proof import proof_prefix
from infra.alarms import alarm_topic
from infra.buckets import WRITE_ONCE, BucketSettings, artifact_bucket, log_bucket, table_bucket
from infra.job_network import JobNetwork, JobsInGivenNetwork, job_network
from infra.protection import Protection
from infra.spark_application import SparkApplication
from infra.tf import CloudwatchLogGroup, Construct, GlueCatalogDatabase, KmsAlias, KmsKey
from policies.documents import fill
from policies.documents.filling import Value
from stacks.spec.deployments import Deployment
from stacks.spec.groups import groups_of
from stacks.stacks.account_setup import declare_flow_logs, has_flow_logs
from stacks.stacks.providers import EnvironmentStack


def declare_buckets(
    scope: Construct, deployment: Deployment, pipelines: Sequence[Pipeline], key_arn: str, protection: Protection
) -> None:
    """Declare the buckets of tables, artifacts and logs, and that of Tableflow if a pipeline uses it."""
    has_tableflow = any(isinstance(pipeline.engine, Tableflow) for pipeline in pipelines)
    proofs = [proof_prefix(job_name(INGEST, group.name)) for group in groups_of(pipelines)]
    names, given = deployment.names, deployment.existing.buckets.given

    def settings(what: str, document: str, placeholder: str, **more: Value) -> BucketSettings:
        values = {"account": deployment.account, "key": key_arn, placeholder: names.bucket(what), **more}
        policy = fill(document, values, partition=names.partition)
        return {"bucket": names.bucket(what), "key_arn": key_arn, "policy": policy, "protection": protection}

    for what in ("tables", "tableflow") if has_tableflow else ("tables",):
        # Confluent requires a bucket that is empty before its first table, so it has one of its own.
        if what not in given:
            table_bucket(scope, what, **settings(what, "table_bucket", "table_bucket"))
    if "artifacts" not in given:
        once = {"write_once_prefixes": WRITE_ONCE}
        own = settings("artifacts", "artifact_bucket", "artifact_bucket", **once)
        artifact_bucket(scope, "artifacts", proof_prefixes=proofs, **own)
    if "logs" not in given:
        log_bucket(
            scope, "logs", keep_days=deployment.monitoring.log_days, **settings("logs", "log_bucket", "log_bucket")
        )


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
    former_application_ids: tuple[str, ...] = ()

    @property
    def application_ids(self) -> list[str]:
        """The ids of all applications: runs may be on each of them."""
        return [self.application_id, *self.former_application_ids]


class Foundation(EnvironmentStack):
    """The foundation stack. It changes rarely and holds data."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        pipelines: Sequence[Pipeline],
        *,
        protection: Protection,
    ) -> None:
        super().__init__(scope, "foundation", deployment, has_confluent=False)
        self._deployment, names, existing = deployment, deployment.names, deployment.existing
        key_arn = existing.key_arn or self._key(deployment, protection)
        declare_buckets(self, deployment, pipelines, key_arn, protection)
        namespaces = {p.table.namespace for p in pipelines} - {*existing.databases}
        # Without a location, Iceberg puts a table under `<warehouse>/<database>.db/<table>`: the jobs' rights name that.
        catalog = Construct(self, "catalog")
        for namespace in sorted(namespaces):
            GlueCatalogDatabase(catalog, namespace, name=namespace, lifecycle=protection.lifecycle)
        for job in (INGEST, MAINTAIN):
            CloudwatchLogGroup(
                self,
                f"{job}-log",
                name=names.log_group(job),
                retention_in_days=offered_days(deployment.monitoring.log_days),
                kms_key_id=key_arn,
            )
        current, *former = self._applications(key_arn)
        topic_arn = alarm_topic(self, topic=names.prefix, key_arn=key_arn, emails=deployment.monitoring.emails)
        self.outputs = FoundationOutputs(
            table_bucket=names.bucket("tables"),
            tableflow_bucket=names.bucket("tableflow"),
            artifact_bucket=names.bucket("artifacts"),
            log_bucket=names.bucket("logs"),
            key_arn=key_arn,
            application_id=current.id,
            alarm_topic_arn=topic_arn,
            former_application_ids=tuple(each.id for each in former),
        )

    def _key(self, deployment: Deployment, protection: Protection) -> str:
        """Declare the key of the lake and return its ARN. No table can be read without it, so it is kept like the data."""
        names, scope = deployment.names, Construct(self, "key")
        where = {"account": deployment.account, "region": deployment.region}
        policy = fill("lake_key", {**where, "log_groups": [names.log_group("")]}, partition=names.partition)
        key = KmsKey(
            scope,
            "key",
            description=f"{names.prefix}: tables, artifacts, secrets, logs",
            enable_key_rotation=True,
            deletion_window_in_days=30,
            policy=json.dumps(policy),
            lifecycle=protection.lifecycle,
        )
        KmsAlias(scope, "alias", name=f"alias/{names.prefix}", target_key_id=key.key_id)
        return str(key.arn)

    def _applications(self, key_arn: str) -> list[SparkApplication]:
        """Declare the applications, that on which jobs run first, and their networks."""
        deployment, made = self._deployment, list[SparkApplication]()
        networks = dict[str, JobNetwork | JobsInGivenNetwork]()
        for each in deployment.applications:
            plan = each.network or deployment.network
            if plan.name not in networks:
                named = "-".join(filter(None, ("network", plan.name)))
                networks[plan.name] = job_network(self, named, plan, deployment.region)
            network = networks[plan.name]
            made.append(
                SparkApplication(
                    self,
                    "-".join(filter(None, ("spark", each.name))),
                    application=deployment.names.application(each.label, each.architecture, each.name),
                    release_label=each.label,
                    architecture=each.architecture,
                    capacity=each.capacity,
                    idle_minutes=each.idle_minutes,
                    subnet_ids=network.subnet_ids,
                    security_group_ids=network.security_group_ids,
                )
            )
        network = networks[deployment.network.name]
        if isinstance(network, JobNetwork) and has_flow_logs(deployment.network):
            days = offered_days(deployment.monitoring.log_days)
            declare_flow_logs(self, deployment, vpc_id=network.vpc_id, key_arn=key_arn, log_days=days)
        return made


# The retention times that CloudWatch Logs offers (PutRetentionPolicy, retentionInDays).
_OFFERED_DAYS = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180),
    *(365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653),
)


def offered_days(wanted: int) -> int:
    """Return the shortest retention that CloudWatch Logs offers and that is long enough."""
    return next(days for days in _OFFERED_DAYS if days >= wanted)


def workers_of(deployment: Deployment, pipelines: Sequence[Pipeline]) -> tuple[Workers, ...]:
    """Return the workers of all jobs of an environment; those of its defaults if no job lands a pipeline."""
    jobs = [deployment.runs.of(group.name) for group in groups_of(pipelines)] or [deployment.runs]
    return tuple(workers for each in jobs for workers in (each.ingest, each.maintain))
