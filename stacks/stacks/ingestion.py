"""The ingestion stacks, which land the pipelines: one for the pipelines without a group and what all groups share, and one
for each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from frazil.declaration import digest
from frazil.release.manifest import Release
from frazil.rollout.desired import INGEST, MAINTAIN, job_name
from infra.alarms import schedule_alarm
from infra.cloudwatch_dashboard import Dashboard
from infra.iam_role import ExecutionRole
from infra.tf import (
    CloudwatchLogGroup,
    Construct,
    Fn,
    SchedulerScheduleGroup,
    TerraformLocal,
    TerraformOutput,
)
from policies.documents import fill
from stacks.spec.deployments import Deployment
from stacks.spec.groups import Group
from stacks.stacks.confluent import ConfluentOutputs
from stacks.stacks.deployed_reconciler import function_name
from stacks.stacks.environment_document import APPLICATION, BOOTSTRAP, REGISTRY, Text, environment_text
from stacks.stacks.foundation import FoundationOutputs, offered_days
from stacks.stacks.landing_jobs import GroupJobs, artifact
from stacks.stacks.operator_roles import OperatorRoles
from stacks.stacks.providers import EnvironmentStack

FORMER = "former_applications"
"""The output with the ids of the applications that jobs leave, for `frazil deploy move-application`."""


class Ingestion(EnvironmentStack):
    """The stack of the pipelines without a group, and of what all groups share: environment document, scheduler, operators."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        groups: Sequence[Group],
        foundation: FoundationOutputs,
        confluent: ConfluentOutputs,
        *,
        release: Release | None,
    ) -> None:
        super().__init__(scope, "ingestion", deployment, has_confluent=False)
        self._deployment, self._names = deployment, deployment.names
        self._foundation, self._confluent = foundation, confluent
        if not groups:
            return
        jobs = [GroupJobs(self, group, deployment, foundation, confluent) for group in groups if group.name is None]
        environment = _environment(self, deployment, foundation, confluent)
        key = f"documents/{environment.sha256}.json"
        stored = artifact(self, self._environment_id(), key, environment.text, foundation, is_named_by_content=True)
        if release is not None:
            scheduler = self._scheduler(groups)
            schedules = SchedulerScheduleGroup(self, "schedules", name=self._names.schedule_group)
            for each in jobs:
                each.run(release, environment.sha256, scheduler.arn, [stored, *scheduler.ready, schedules])
            topic_arn = foundation.alarm_topic_arn
            schedule_alarm(self, group=self._names.schedule_group, prefix=self._names.prefix, topic_arn=topic_arn)
            Dashboard(
                self,
                "dashboard",
                dashboard=self._names.prefix,
                namespace=self._names.metrics_namespace,
                region=deployment.region,
            )
        OperatorRoles(self, "operators", deployment=deployment, foundation=foundation, groups=groups)
        TerraformOutput(self, "environment_document", value=f"s3://{foundation.artifact_bucket}/{key}")
        if deployment.emr.former:
            TerraformOutput(self, FORMER, value=list(foundation.former_application_ids))

    def _environment_id(self) -> str:
        """Return the id of the environment document's object, which differs whenever the document may differ.

        Terraform fills in the ids of application and cluster, so the id includes the settings that these depend on.
        """
        chosen = self._deployment
        text = environment_text(
            chosen,
            replace(self._foundation, application_id=APPLICATION),
            replace(self._confluent, bootstrap=BOOTSTRAP, registry_url=REGISTRY),
        )
        cluster = (chosen.confluent.kind, chosen.confluent.is_multi_zone)
        ids = (chosen.confluent.environment_id, chosen.confluent.cluster_id)
        named = filter(None, (chosen.emr.application, chosen.network.name))
        fills = (chosen.emr.label, chosen.emr.architecture, chosen.network, cluster, ids, *named)
        return f"environment-{digest(f'{text} {fills!r}'.encode())[:16]}"

    def _scheduler(self, groups: Sequence[Group]) -> ExecutionRole:
        """Declare the scheduler's role, which may start maintenance runs and call the groups' reconcilers."""
        where = {"account": self._deployment.account, "region": self._deployment.region}
        partition = self._names.partition
        return ExecutionRole(
            self,
            "scheduler-role",
            names=self._names,
            role=self._names.role("scheduler"),
            trust=fill("scheduler_trust", {**where, "schedule_group": self._names.schedule_group}, partition=partition),
            policy=fill(
                "scheduler",
                {
                    **where,
                    "applications": self._foundation.application_ids,
                    "job_roles": [self._names.role_arn(job_name(MAINTAIN, group.name)) for group in groups],
                    "functions": [function_name(self._deployment, job_name(INGEST, group.name)) for group in groups],
                },
                partition=partition,
            ),
            description="EventBridge Scheduler starts maintenance runs and calls the reconciler.",
        )


class GroupIngestion(EnvironmentStack):
    """The stack of one group. It needs the stack `ingestion`. Without pipelines it is empty, so that the next apply removes all."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        group: Group,
        foundation: FoundationOutputs,
        confluent: ConfluentOutputs,
        *,
        release: Release | None,
    ) -> None:
        super().__init__(scope, f"ingestion-{group.name}", deployment, has_confluent=False)
        if not group.examples:
            return
        names = deployment.names
        logs = [
            CloudwatchLogGroup(
                self,
                f"{kind}-log",
                name=names.log_group(job_name(kind, group.name)),
                retention_in_days=offered_days(deployment.monitoring.log_days),
                kms_key_id=foundation.key_arn,
            )
            for kind in (INGEST, MAINTAIN)
        ]
        jobs = GroupJobs(self, group, deployment, foundation, confluent)
        if release is not None:
            environment = _environment(self, deployment, foundation, confluent)
            jobs.run(release, environment.sha256, names.role_arn("scheduler"), logs)


def _environment(
    scope: Construct, deployment: Deployment, foundation: FoundationOutputs, confluent: ConfluentOutputs
) -> Text:
    """Return the environment document as a local. The stack `ingestion` writes it; others only need its digest."""
    # Kafka's clients need host:port. As a local, the document is valid JSON before Terraform fills it in, too.
    bootstrap = TerraformLocal(scope, "bootstrap", Fn.replace(confluent.bootstrap, "SASL_SSL://", ""))
    text = environment_text(deployment, foundation, replace(confluent, bootstrap=str(bootstrap.as_string)))
    return Text(scope, "environment-text", text)
