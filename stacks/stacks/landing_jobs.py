"""The jobs of one group of pipelines: their document, a role for each job, desired state, schedules and alarms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from frazil.declaration import Pipeline, TopicPattern, canonical, digest
from frazil.declaration.documents.document import document
from frazil.declaration.shape import shape_secrets
from frazil.release.manifest import Release, Role
from frazil.rollout.desired import INGEST, MAINTAIN, Desired, Mode, desired_document, desired_key, job_name
from frazil.rollout.job_run_request import TAG_DESIRED, TAG_JOB, TAG_RELEASE, run_settings
from frazil.rollout.run_proof import proof_prefix
from infra.alarms import GroupAlarms, PipelineAlarms, Watched
from infra.iam_role import ExecutionRole
from infra.schedules import EXECUTION_ID, START_JOB_RUN, Schedule
from infra.table_grants import LANDS, MAINTAINS, TableGrants
from infra.tf import Construct, S3Object, TerraformResource, TerraformResourceLifecycle
from policies.documents import fill
from policies.table_resources import Places
from stacks.spec.deployments import AlarmsOf, Deployment
from stacks.spec.groups import Group
from stacks.stacks.confluent import ConfluentOutputs
from stacks.stacks.deployed_reconciler import deploy_reconciler
from stacks.stacks.environment_document import APPLICATION, ENVIRONMENT_DIGEST, filled
from stacks.stacks.foundation import FoundationOutputs
from stacks.stacks.operator_roles import places


def desired_state(
    deployment: Deployment, release: Release, *, group: str | None, document: str, log_bucket: str
) -> Desired:
    """Return the desired state of a group's ingest job, with placeholders for the values that Terraform fills in."""
    runs, names, job = deployment.runs.of(group), deployment.names, job_name(INGEST, group)
    return Desired(
        job=job,
        generation=deployment.runs.generation,
        label=deployment.emr.label,
        application=APPLICATION,
        release=release.key,
        document=document,
        environment=f"documents/{ENVIRONMENT_DIGEST}.json",
        execution_role=names.role_arn(job),
        log_uri=f"s3://{log_bucket}/{job}/",
        log_group=names.log_group(job),
        mode=runs.mode,
        workers=runs.ingest,
        timeout_minutes=runs.ingest_minutes,
    )


def maintenance_request(
    desired: Desired, release: Release, bucket: str, *, job: str, role_arn: str, log_group: str
) -> dict[str, Any]:
    """Return the request of a maintenance run of the same release, documents and workers. It removes orphan files."""
    run = run_settings(desired, release, bucket=bucket)
    submit = run["jobDriver"]["sparkSubmit"]
    documents = submit["entryPointArguments"][:4]  # --document D --environment E
    monitoring = run["configurationOverrides"]["monitoringConfiguration"]
    logs = {**monitoring["cloudWatchLoggingConfiguration"], "logGroupName": log_group}
    return for_scheduler(
        {
            **run,
            "name": f"frazil-{job}",
            "executionRoleArn": role_arn,
            "jobDriver": {
                "sparkSubmit": {
                    **submit,
                    "entryPoint": f"s3://{bucket}/{release.the(Role.MAINTAIN).key}",
                    "entryPointArguments": [*documents, "--once", "--orphans"],
                }
            },
            "configurationOverrides": {
                "monitoringConfiguration": {**monitoring, "cloudWatchLoggingConfiguration": logs}
            },
            # Not the tags of the ingest job: the reconciler would cancel the run.
            "tags": {TAG_JOB: job, TAG_RELEASE: release.version, TAG_DESIRED: "scheduled"},
        }
    )


_KEYS_ARE_VALUES = {"tags", "logTypes"}


def for_scheduler(request: Mapping[str, Any]) -> dict[str, Any]:
    """Write the members of a request with a capital first letter, as EventBridge Scheduler's universal targets do.

    https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-universal.html
    """
    members = ((key, value if key in _KEYS_ARE_VALUES else _renamed(value)) for key, value in request.items())
    return {key[:1].upper() + key[1:]: value for key, value in members}


def _renamed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return for_scheduler(value)
    return [_renamed(part) for part in value] if isinstance(value, list) else value


PREFIX = "documents"


class PipelineDocument(Construct):
    """The document of some pipelines and patterns. Changed pipelines are another object, at another address.

    So Terraform can forget the old object instead of deleting it: a run that has not ended may still read it.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        pipelines: Sequence[Pipeline],
        patterns: Sequence[TopicPattern] = (),
        foundation: FoundationOutputs,
    ) -> None:
        """Raises `InvalidDeclaration` if two of the pipelines contradict each other."""
        super().__init__(scope, name)
        written = canonical(document(pipelines, patterns))
        named = digest(written)
        self.key = f"{PREFIX}/{named}.json"
        text = filled(written.decode(), {})
        self.stored = artifact(self, f"object-{named[:16]}", self.key, text, foundation, is_named_by_content=True)


def artifact(
    scope: Construct,
    name: str,
    key: str,
    text: str,
    foundation: FoundationOutputs,
    *,
    is_named_by_content: bool = False,
    after: Sequence[TerraformResource] = (),
) -> S3Object:
    """Declare an object. If its key depends on the content, `name` does too, so Terraform can forget the old object."""
    return S3Object(
        scope,
        name,
        bucket=foundation.artifact_bucket,
        key=key,
        content=text,
        content_type="application/json",
        server_side_encryption="aws:kms",
        kms_key_id=foundation.key_arn,
        depends_on=list(after) or None,
        lifecycle=TerraformResourceLifecycle(create_before_destroy=True) if is_named_by_content else None,
    )


_ARTIFACTS = ("artifacts", "releases", "documents")
"""The prefixes of the artifact bucket that jobs read."""
_POLICIES = {INGEST: "ingest_job", MAINTAIN: "maintenance_job"}
_LONGEST_MAINTENANCE_MINUTES = 720


def _job_role(
    scope: Construct,
    kind: str,
    group: str | None,
    deployment: Deployment,
    foundation: FoundationOutputs,
    confluent: ConfluentOutputs,
    own: Places,
    pipelines: Sequence[Pipeline],
) -> ExecutionRole:
    """Declare the role of a group's job of a kind, with access to its `own` tables, secrets and log."""
    document, job, names = _POLICIES[kind], job_name(kind, group), deployment.names
    more = {
        "artifact_bucket": foundation.artifact_bucket,
        "artifact_prefixes": _ARTIFACTS,
        "proof_prefix": proof_prefix(job).rstrip("/"),
        "log_bucket": foundation.log_bucket,
        "log_prefix": job,
        "log_group": names.log_group(job),
        "key": foundation.key_arn,
        "secrets": [confluent.secret_arn, *shape_secrets(pipelines)],
    }
    values = own.values(document, **more)
    applications = {"applications": foundation.application_ids}
    where = {"account": deployment.account, "region": deployment.region}
    return ExecutionRole(
        scope,
        f"{kind}-role",
        names=names,
        role=names.role(job),
        trust=fill("job_trust", {**where, **applications}, partition=names.partition),
        policy=fill(document, values, partition=names.partition),
        description=f"The {job} job's runs.",
    )


class GroupJobs:
    """The jobs of one group, declared in `scope`. Without a release, as in the first deployment, nothing runs."""

    def __init__(
        self,
        scope: Construct,
        group: Group,
        deployment: Deployment,
        foundation: FoundationOutputs,
        confluent: ConfluentOutputs,
    ) -> None:
        self._scope, self._group, self._deployment, self._names = scope, group.name, deployment, deployment.names
        self._foundation = foundation
        self._pipelines = group.pipelines
        own = places(deployment, foundation, group.pipelines, group.patterns)
        self._places = replace(own, shared=frozenset(group.shared) | own.shared)
        self._roles = [
            _job_role(scope, kind, group.name, deployment, foundation, confluent, self._places, group.examples)
            for kind in (INGEST, MAINTAIN)
        ]
        self._grants = self._granted() if deployment.access.lake_formation else []
        self._document = PipelineDocument(
            scope, "pipelines", pipelines=group.pipelines, patterns=group.patterns, foundation=foundation
        )

    def run(
        self, release: Release, environment: str, scheduler_arn: str, after: Sequence[TerraformResource] = ()
    ) -> None:
        """Declare desired state, schedules and alarms. `environment` is the digest of its document."""
        desired = desired_state(
            self._deployment,
            release,
            group=self._group,
            document=self._document.key,
            log_bucket=self._foundation.log_bucket,
        )
        ready = [self._document.stored, *(part for role in self._roles for part in role.ready), *self._grants, *after]
        bucket, runs = self._foundation.artifact_bucket, self._deployment.runs.of(self._group)
        names, ingest, maintain = self._names, desired.job, job_name(MAINTAIN, self._group)
        known = {APPLICATION: self._foundation.application_id, ENVIRONMENT_DIGEST: environment}
        text = filled(desired_document(desired).decode(), known)
        stored = artifact(self._scope, "desired", desired_key(ingest), text, self._foundation, after=ready)
        deploy_reconciler(
            self._scope,
            job=ingest,
            deployment=self._deployment,
            runs=runs,
            foundation=self._foundation,
            release=release,
            scheduler_arn=scheduler_arn,
            after=[*ready, stored],
        )
        maintained = replace(
            desired,
            mode=Mode.DRAIN,
            workers=runs.maintain,
            log_uri=f"s3://{self._foundation.log_bucket}/{maintain}/",
        )
        request = maintenance_request(
            maintained,
            release,
            bucket,
            job=maintain,
            role_arn=names.role_arn(maintain),
            log_group=names.log_group(maintain),
        )
        # The token of a run is the execution's id, so the scheduler may try twice. Runs do not overlap, as the service ends one
        # that lasts as long as the interval; should they, the fence lets one of them commit.
        longest = min(runs.maintain_hours * 60, _LONGEST_MAINTENANCE_MINUTES)
        request |= {"ClientToken": EXECUTION_ID, "ExecutionTimeoutMinutes": longest}
        Schedule(
            self._scope,
            "maintain-schedule",
            schedule=f"{names.prefix}-{maintain}",
            expression="rate(1 hour)" if runs.maintain_hours == 1 else f"rate({runs.maintain_hours} hours)",
            request=filled(json.dumps(request), known),
            minutes=longest,
            group=names.schedule_group,
            target_arn=f"arn:{names.partition}:{START_JOB_RUN}",
            role_arn=scheduler_arn,
            after=ready,
        )
        self._watch()

    def _watch(self) -> None:
        """Declare the alarms. A deployment without a release has none: no run reports, so each alarm would be raised."""
        runs = self._deployment.runs.of(self._group)
        watched = Watched(
            prefix=self._names.prefix,
            namespace=self._names.metrics_namespace,
            topic_arn=self._foundation.alarm_topic_arn,
            group=self._group,
            freshness_seconds=runs.freshness_minutes * 60,
            every_minutes=runs.ingest_minutes if runs.mode is Mode.DRAIN else 5,
        )
        if self._deployment.monitoring.alarms is AlarmsOf.GROUP:
            # Without topics, no pipeline of a pattern reports.
            GroupAlarms(self._scope, "alarms", watched=watched, is_silence_bad=bool(self._pipelines))
            return
        for pipeline in self._pipelines:
            PipelineAlarms(self._scope, f"alarms-{pipeline.name}", pipeline=pipeline.name, watched=watched)

    def _granted(self) -> list[TerraformResource]:
        """Declare Lake Formation's grants of both roles. Return what a run must wait for."""
        granted = (LANDS, MAINTAINS)
        grants = [
            TableGrants(
                self._scope,
                f"{kind}-grants",
                role_arn=role.arn,
                databases=self._places.databases,
                granted=each,
                after=role.ready,
            )
            for kind, role, each in zip((INGEST, MAINTAIN), self._roles, granted, strict=True)
        ]
        return [part for each in grants for part in each.ready]
