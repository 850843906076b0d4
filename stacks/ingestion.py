"""The ingestion stack, which lands the pipelines: documents, a role per job, desired state, schedules, alarms."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from frazil.declaration import Pipeline, Spark, digest
from frazil.release.manifest import Release
from frazil.rollout.desired import Desired, Mode, desired_document, desired_key
from infra.alarms import PipelineAlarms, ScheduleAlarm
from infra.execution_role import ExecutionRole
from infra.job_schedule import JobSchedule
from infra.pipeline_document import PipelineDocument
from infra.tf import (
    Construct,
    Fn,
    S3Object,
    SchedulerScheduleGroup,
    TerraformLocal,
    TerraformOutput,
    TerraformResource,
    TerraformResourceLifecycle,
)
from policies.documents import fill, placeholders
from stacks.confluent import ConfluentOutputs
from stacks.deployments import Deployment
from stacks.environment_document import environment_text
from stacks.foundation import FoundationOutputs
from stacks.job_requests import desired_state, ingest_request, maintenance_request
from stacks.operator_roles import OperatorRoles, places
from stacks.providers import EnvironmentStack
from stacks.unknown_values import APPLICATION, BOOTSTRAP, ENVIRONMENT_DIGEST, REGISTRY, Text, filled

ARTIFACTS = ("artifacts", "releases", "documents")
"""The prefixes of the artifact bucket that jobs read."""
_LONGEST_MAINTENANCE_MINUTES = 720


class Ingestion(EnvironmentStack):
    """The ingestion stack. Without a release, as in the first deployment, it creates everything but runs."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        pipelines: Sequence[Pipeline],
        foundation: FoundationOutputs,
        confluent: ConfluentOutputs,
        *,
        release: Release | None,
    ) -> None:
        super().__init__(scope, "ingestion", deployment, has_confluent=False)
        self._deployment, self._names = deployment, deployment.names
        self._foundation, self._confluent = foundation, confluent
        own = [pipeline for pipeline in pipelines if isinstance(pipeline.engine, Spark)]
        if not own:
            return
        roles = {job: self._role(job, own) for job in ("ingest", "maintain")}
        document = PipelineDocument(
            self, "pipelines", pipelines=own, bucket=foundation.artifact_bucket, key_arn=foundation.key_arn
        )
        # Kafka's clients need host:port. As a local, the document is valid JSON before Terraform fills it in, too.
        bootstrap = TerraformLocal(self, "bootstrap", Fn.replace(confluent.bootstrap, "SASL_SSL://", ""))
        environment = Text(
            self,
            "environment-text",
            environment_text(deployment, foundation, replace(confluent, bootstrap=str(bootstrap.as_string))),
        )
        key = f"documents/{environment.sha256}.json"
        stored = self._object(self._environment_id(), key, environment.text, is_named_by_content=True)
        if release is not None:
            after = [*document.ready, stored]
            desired = desired_state(deployment, release, document=document.key, log_bucket=foundation.log_bucket)
            self._run(desired, release, environment.sha256, roles, after)
        OperatorRoles(self, "operators", deployment=deployment, foundation=foundation, pipelines=own)
        for pipeline in own:
            PipelineAlarms(
                self,
                f"alarms-{pipeline.name}",
                pipeline=pipeline.name,
                prefix=self._names.prefix,
                namespace=self._names.metrics_namespace,
                topic_arn=foundation.alarm_topic_arn,
                freshness_seconds=deployment.runs.freshness_minutes * 60,
                every_minutes=deployment.runs.ingest_minutes if deployment.runs.mode is Mode.DRAIN else 5,
            )
        TerraformOutput(self, "environment_document", value=f"s3://{foundation.artifact_bucket}/{key}")

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
        fills = (chosen.label, chosen.architecture, chosen.network, cluster, ids)
        return f"environment-{digest(f'{text} {fills!r}'.encode())[:16]}"

    def _object(
        self,
        name: str,
        key: str,
        text: str,
        *,
        is_named_by_content: bool = False,
        after: Sequence[TerraformResource] = (),
    ) -> S3Object:
        """Declare an object. If its key depends on the content, `name` does too, so Terraform can forget the old object."""
        return S3Object(
            self,
            name,
            bucket=self._foundation.artifact_bucket,
            key=key,
            content=text,
            content_type="application/json",
            server_side_encryption="aws:kms",
            kms_key_id=self._foundation.key_arn,
            depends_on=list(after) or None,
            lifecycle=TerraformResourceLifecycle(create_before_destroy=True) if is_named_by_content else None,
        )

    def _role(self, job: str, pipelines: Sequence[Pipeline]) -> ExecutionRole:
        """Declare the role of a job, with access to its own tables, secret and log."""
        document = {"ingest": "ingest_job", "maintain": "maintenance_job"}[job]
        more = {
            "artifact_bucket": self._foundation.artifact_bucket,
            "artifact_prefixes": ARTIFACTS,
            "log_bucket": self._foundation.log_bucket,
            "log_prefix": job,
            "log_group": self._names.log_group(job),
            "key": self._foundation.key_arn,
            "secrets": [self._confluent.secret_arn],
        }
        wanted = placeholders(document)
        where_tables_are = places(self._deployment, self._foundation, pipelines)
        values = where_tables_are.values(document, **{key: value for key, value in more.items() if key in wanted})
        applications = {"applications": [self._foundation.application_id]}
        where = {"account": self._deployment.account, "region": self._deployment.region}
        return ExecutionRole(
            self,
            f"{job}-role",
            role=self._names.role(job),
            boundary_arn=self._names.boundary_arn,
            trust=fill("job_trust", {**where, **applications}),
            policy=fill(document, values),
            description=f"The {job} job's runs.",
        )

    def _run(
        self,
        desired: Desired,
        release: Release,
        environment: str,
        roles: dict[str, ExecutionRole],
        documents: Sequence[TerraformResource],
    ) -> None:
        """Declare desired state and schedules. They depend on documents and roles, which must exist before a run starts."""
        bucket, runs = self._foundation.artifact_bucket, self._deployment.runs
        known = {APPLICATION: self._foundation.application_id, ENVIRONMENT_DIGEST: environment}
        after = [*documents, *(part for role in roles.values() for part in role.ready)]
        self._object("desired", desired_key("ingest"), filled(desired_document(desired).decode(), known), after=after)
        # The digest of desired state tags runs and names their drivers, so it is computed from the filled text.
        chosen = Text(self, "desired-text", filled(desired.chosen.decode(), known))
        marked = {**known, desired.digest: chosen.sha256, desired.digest[:8]: chosen.beginning(8)}
        scheduler = self._scheduler(roles)
        group = SchedulerScheduleGroup(self, "schedules", name=self._names.schedule_group)
        common: dict[str, Any] = {"group": group.name, "role_arn": scheduler.arn, "after": [*after, *scheduler.ready]}
        if runs.mode is Mode.DRAIN:
            JobSchedule(
                self,
                "ingest-schedule",
                schedule=f"{self._names.prefix}-ingest",
                expression=f"rate({runs.ingest_minutes} minutes)",
                request=filled(json.dumps(ingest_request(desired, release, bucket)), marked),
                longest_minutes=runs.ingest_minutes,
                is_on=True,
                **common,
            )
        maintained = replace(
            desired,
            mode=Mode.DRAIN,
            workers=runs.maintain,
            log_uri=f"s3://{self._foundation.log_bucket}/maintain/",
        )
        request = maintenance_request(
            maintained,
            release,
            bucket,
            role_arn=self._names.role_arn("maintain"),
            log_group=self._names.log_group("maintain"),
        )
        JobSchedule(
            self,
            "maintain-schedule",
            schedule=f"{self._names.prefix}-maintain",
            expression="rate(1 hour)" if runs.maintain_hours == 1 else f"rate({runs.maintain_hours} hours)",
            request=filled(json.dumps(request), known),
            longest_minutes=min(runs.maintain_hours * 60, _LONGEST_MAINTENANCE_MINUTES),
            is_on=True,
            **common,
        )
        ScheduleAlarm(
            self,
            "alarm-schedules",
            group=self._names.schedule_group,
            prefix=self._names.prefix,
            topic_arn=self._foundation.alarm_topic_arn,
        )

    def _scheduler(self, roles: dict[str, ExecutionRole]) -> ExecutionRole:
        """Declare the scheduler's role, which may start runs of this application with the jobs' roles."""
        where = {"account": self._deployment.account, "region": self._deployment.region}
        return ExecutionRole(
            self,
            "scheduler-role",
            role=self._names.role("scheduler"),
            boundary_arn=self._names.boundary_arn,
            trust=fill("scheduler_trust", {**where, "schedule_group": self._names.schedule_group}),
            policy=fill(
                "scheduler",
                {
                    **where,
                    "applications": [self._foundation.application_id],
                    "job_roles": [self._names.role_arn(job) for job in roles],
                },
            ),
            description="EventBridge Scheduler starts job runs.",
        )
