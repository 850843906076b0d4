"""The operator roles: the reader of tables and the reconciler of runs. The deployment names who may assume them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frazil.declaration import Pipeline, TopicPattern, digest
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
from policies.documents import fill
from policies.documents.filling import Value
from policies.table_resources import Places
from stacks.spec.deployments import Deployment, Workgroup
from stacks.spec.groups import Group
from stacks.stacks.account_setup import DOCUMENTS
from stacks.stacks.environment_document import WAREHOUSE
from stacks.stacks.foundation import FoundationOutputs

_GIB = 1024**3


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


def places(
    deployment: Deployment,
    foundation: FoundationOutputs,
    pipelines: Sequence[Pipeline],
    patterns: Sequence[TopicPattern] = (),
) -> Places:
    """Return the locations of the pipelines' tables and dead-letter tables, and of the namespaces of patterns."""
    return Places(
        region=deployment.region,
        account=deployment.account,
        table_bucket=foundation.table_bucket,
        warehouse=WAREHOUSE,
        tables=[name for p in pipelines for name in p.tables],
        scope=deployment.access.scope,
        shared=frozenset(deployment.existing.databases),
        open_namespaces=frozenset(pattern.namespace for pattern in patterns),
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
        patterns = [pattern for group in groups for pattern in group.patterns]
        self._deployment, self._places = deployment, places(deployment, foundation, pipelines, patterns)
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
            encryption = AthenaWorkgroupConfigurationResultConfigurationEncryptionConfiguration(
                encryption_option="SSE_KMS", kms_key_arn=foundation.key_arn
            )
            most = workgroup.most_scanned_gb
            AthenaWorkgroup(
                Construct(self, "athena"),
                "workgroup",
                name=self._deployment.names.prefix,
                description="Readers query tables.",
                force_destroy=self._deployment.is_disposable,
                configuration=AthenaWorkgroupConfiguration(
                    enforce_workgroup_configuration=True,  # whatever a client asks
                    publish_cloudwatch_metrics_enabled=True,
                    bytes_scanned_cutoff_per_query=None if most is None else most * _GIB,
                    result_configuration=AthenaWorkgroupConfigurationResultConfiguration(
                        output_location=f"s3://{foundation.log_bucket}/{RESULTS}/", encryption_configuration=encryption
                    ),
                ),
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
        partition = self._deployment.names.partition
        policy = fill(role, self._places.values(role, **values), partition=partition)
        if athena:
            queries = fill("athena_reader", self._places.values("athena_reader", **athena), partition=partition)
            policy = {**policy, "Statement": [*policy["Statement"], *queries["Statement"]]}
        return ExecutionRole(
            self,
            role,
            names=self._deployment.names,
            role=self._deployment.names.role(role),
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
