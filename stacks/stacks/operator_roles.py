"""The operator roles: the reader of tables and the reconciler of runs. The deployment names who may assume them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frazil.declaration import Pipeline, digest
from frazil.rollout.desired import INGEST, MAINTAIN, job_name
from infra.iam_role import ExecutionRole
from infra.table_grants import READS, TableGrants
from infra.tf import (
    AthenaWorkgroup,
    AthenaWorkgroupConfiguration,
    AthenaWorkgroupConfigurationResultConfiguration,
    AthenaWorkgroupConfigurationResultConfigurationEncryptionConfiguration,
    Construct,
)
from policies.documents import fill, placeholders
from policies.documents.filling import Value
from policies.table_resources import Places
from stacks.spec.deployments import Deployment, Workgroup
from stacks.spec.groups import Group
from stacks.stacks.account_setup import DOCUMENTS
from stacks.stacks.environment_document import WAREHOUSE
from stacks.stacks.foundation import FoundationOutputs

_GIB = 1024**3


class QueryWorkgroup(Construct):
    """Its settings count for every query, whatever a client asks: where results are, and the key that encrypts them."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        workgroup: str,
        results: str,
        key_arn: str,
        most_scanned_gb: int | None,
        is_disposable: bool,
    ) -> None:
        """`results` is the place of results, `s3://bucket/prefix/`. `is_disposable`: it is deleted with its saved queries."""
        super().__init__(scope, name)
        encryption = AthenaWorkgroupConfigurationResultConfigurationEncryptionConfiguration(
            encryption_option="SSE_KMS", kms_key_arn=key_arn
        )
        AthenaWorkgroup(
            self,
            "workgroup",
            name=workgroup,
            description="Readers query tables.",
            force_destroy=is_disposable,
            configuration=AthenaWorkgroupConfiguration(
                enforce_workgroup_configuration=True,
                publish_cloudwatch_metrics_enabled=True,
                bytes_scanned_cutoff_per_query=None if most_scanned_gb is None else most_scanned_gb * _GIB,
                result_configuration=AthenaWorkgroupConfigurationResultConfiguration(
                    output_location=results, encryption_configuration=encryption
                ),
            ),
        )


def reconciler_values(
    deployment: Deployment, foundation: FoundationOutputs, *, jobs: Sequence[str]
) -> dict[str, Value]:
    """Return the values that both have in common. `jobs` are those whose roles it may pass to runs."""
    return {
        "account": deployment.account,
        "region": deployment.region,
        "key": foundation.key_arn,
        "artifact_bucket": foundation.artifact_bucket,
        "artifact_prefixes": ["releases", DOCUMENTS, "desired"],
        "document_prefixes": [DOCUMENTS],
        "state_prefixes": ["reconcile"],
        "log_bucket": foundation.log_bucket,
        "applications": foundation.application_ids,
        "job_roles": [deployment.names.role_arn(job) for job in jobs],
    }


RESULTS = "athena"
"""The prefix of Athena's results in the bucket of logs, where they expire like logs."""


def places(deployment: Deployment, foundation: FoundationOutputs, pipelines: Sequence[Pipeline]) -> Places:
    """Return the locations of the pipelines' tables and dead-letter tables."""
    return Places(
        region=deployment.region,
        account=deployment.account,
        table_bucket=foundation.table_bucket,
        warehouse=WAREHOUSE,
        tables=[name for p in pipelines for name in p.tables],
        scope=deployment.access.scope,
        shared=frozenset(deployment.existing.databases),
    )


class OperatorRoles(Construct):
    """The roles whose principals the deployment names. A role without principals is not created."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        deployment: Deployment,
        foundation: FoundationOutputs,
        groups: Sequence[Group],
    ) -> None:
        super().__init__(scope, name)
        pipelines = [pipeline for group in groups for pipeline in group.pipelines]
        self._deployment, self._places = deployment, places(deployment, foundation, pipelines)
        jobs = {kind: [job_name(kind, group.name) for group in groups] for kind in (INGEST, MAINTAIN)}
        key: dict[str, Value] = {"key": foundation.key_arn}
        athena = self._athena(foundation)
        reader = self._made("reader", deployment.access.readers, key, "Engines and people query tables.", athena)
        if reader is not None and deployment.access.lake_formation:
            databases = self._places.databases
            TableGrants(self, "grants", role_arn=reader.arn, databases=databases, granted=READS, after=reader.ready)
        runs: dict[str, Value] = {
            **reconciler_values(deployment, foundation, jobs=jobs[INGEST]),
            "log_prefix": [*jobs[INGEST], *jobs[MAINTAIN]],
            "function_log_groups": [],
        }
        self._made("reconciler", deployment.access.reconcilers, {**key, **runs}, "It keeps runs as they are wanted.")

    def _athena(self, foundation: FoundationOutputs) -> dict[str, Value]:
        """Return the values of the policy for queries; empty without a workgroup. Declare the workgroup unless it is given."""
        workgroup = self._deployment.access.athena_workgroup
        if workgroup is None:
            return {}
        if isinstance(workgroup, Workgroup):
            QueryWorkgroup(
                self,
                "athena",
                workgroup=self._deployment.names.prefix,
                results=f"s3://{foundation.log_bucket}/{RESULTS}/",
                key_arn=foundation.key_arn,
                most_scanned_gb=workgroup.most_scanned_gb,
                is_disposable=self._deployment.is_disposable,
            )
        named = workgroup if isinstance(workgroup, str) else self._deployment.names.prefix
        results = {"log_bucket": foundation.log_bucket, "results_prefix": RESULTS}
        return {"key": foundation.key_arn, **results, "workgroup": named}

    def _made(
        self,
        role: str,
        principals: Sequence[str],
        values: Mapping[str, Value],
        description: str,
        athena: Mapping[str, Value] | None = None,
    ) -> ExecutionRole | None:
        if not principals:
            return None
        wanted, partition = placeholders(role), self._deployment.names.partition
        more = {key: value for key, value in values.items() if key in wanted}
        policy = fill(role, self._places.values(role, **more), partition=partition)
        if athena:
            queries = fill("athena_reader", self._places.values("athena_reader", **athena), partition=partition)
            policy = {**policy, "Statement": [*policy["Statement"], *queries["Statement"]]}
        return ExecutionRole(
            self,
            role,
            role=self._deployment.names.role(role),
            path=self._deployment.names.path,
            boundary_arn=self._deployment.names.boundary_arn,
            trust=_trust(principals, self._deployment.access.external_ids if role == "reader" else {}),
            policy=policy,
            description=description,
        )


def _trust(principals: Sequence[str], external_ids: Mapping[str, str]) -> dict[str, Any]:
    """Return who may assume a role: principals by name, and those of other companies with their external id only."""
    named = [each for each in principals if each not in external_ids]
    documents = [fill("account_trust", {"principals": named})] if named else []
    for principal, external_id in sorted(external_ids.items()):
        document = fill("external_trust", {"principal": principal, "external_id": external_id})
        [statement] = document["Statement"]
        named_by = digest(principal.encode())[:8]  # a number would change with the principals before it
        documents.append({**document, "Statement": [{**statement, "Sid": f"{statement['Sid']}{named_by}"}]})
    return {**documents[0], "Statement": [each for document in documents for each in document["Statement"]]}
