"""Ingestion: what lands the pipelines. Documents, a role a job, desired state, schedules, alarms."""

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
from stacks.job_requests import ingest_request, maintenance_request
from stacks.operator_roles import OperatorRoles, places
from stacks.providers import EnvironmentStack
from stacks.unknown_values import APPLICATION, BOOTSTRAP, ENVIRONMENT_DIGEST, REGISTRY, Text, filled

ARTIFACTS = ("artifacts", "releases", "documents")
"""Prefixes of the artifact bucket that jobs read."""
_LONGEST_MAINTENANCE_MINUTES = 720


class Ingestion(EnvironmentStack):
    """The stack. Without a release it makes everything but runs: the first deployment has none to name."""

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
        ours = [pipeline for pipeline in pipelines if isinstance(pipeline.engine, Spark)]
        if not ours:
            return
        roles = {job: self._role(job, ours) for job in ("ingest", "maintain")}
        document = PipelineDocument(
            self, "pipelines", pipelines=ours, bucket=foundation.artifact_bucket, key_arn=foundation.key_arn
        )
        # Kafka's clients want host:port. A name for it keeps the document JSON before Terraform has filled it in, too.
        bootstrap = TerraformLocal(self, "bootstrap", Fn.replace(confluent.bootstrap, "SASL_SSL://", ""))
        environment = Text(
            self,
            "environment-text",
            environment_text(deployment, foundation, replace(confluent, bootstrap=str(bootstrap.as_string))),
        )
        key = f"documents/{environment.sha256}.json"
        told = self._object(self._environment_id(), key, environment.text, is_named_by_content=True)
        if release is not None:
            after = [*document.ready, told]
            self._run(self._desired(release, document), release, environment.sha256, roles, after)
        OperatorRoles(self, "operators", deployment=deployment, foundation=foundation, pipelines=ours)
        for pipeline in ours:
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
        """The id of the environment document's object: another one whenever the document may be another one.

        Terraform fills in the ids of application and cluster, so what they depend on is part of it.
        """
        chosen = self._deployment
        text = environment_text(
            chosen,
            replace(self._foundation, application_id=APPLICATION),
            replace(self._confluent, bootstrap=BOOTSTRAP, registry_url=REGISTRY),
        )
        fills = (chosen.label, chosen.architecture, chosen.network, chosen.confluent)
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
        """An object. If it is named by its content, `name` depends on the content as well: Terraform deletes no old one."""
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
        """The role of a job: its own tables, its own secret, its own log."""
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

    def _desired(self, release: Release, document: PipelineDocument) -> Desired:
        """What should run, with placeholders for what Terraform fills in."""
        runs, names = self._deployment.runs, self._names
        return Desired(
            job="ingest",
            generation=self._deployment.generation,
            label=self._deployment.label,
            application=APPLICATION,
            release=release.key,
            document=document.key,
            environment=f"documents/{ENVIRONMENT_DIGEST}.json",
            execution_role=names.role_arn("ingest"),
            log_uri=f"s3://{self._foundation.log_bucket}/ingest/",
            log_group=names.log_group("ingest"),
            mode=runs.mode,
            workers=runs.ingest,
            timeout_minutes=runs.ingest_minutes,
        )

    def _run(
        self,
        desired: Desired,
        release: Release,
        environment: str,
        roles: dict[str, ExecutionRole],
        documents: Sequence[TerraformResource],
    ) -> None:
        """What should run, and when. It only names documents and roles: they are there before anyone can start a run."""
        bucket, runs = self._foundation.artifact_bucket, self._deployment.runs
        known = {APPLICATION: self._foundation.application_id, ENVIRONMENT_DIGEST: environment}
        after = [*documents, *(part for role in roles.values() for part in role.ready)]
        self._object("desired", desired_key("ingest"), filled(desired_document(desired).decode(), known), after=after)
        # The digest of desired state, which tags runs and names their drivers, is of its filled text.
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
        """The role of the scheduler: start runs of our application, with our jobs' roles."""
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
