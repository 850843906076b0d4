"""The operator roles: the reader of tables and the reconciler of runs. The deployment names who may assume them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from frazil.declaration import Pipeline
from frazil.rollout.group_jobs import INGEST, MAINTAIN, job_name
from infra.execution_role import ExecutionRole
from infra.tf import Construct
from policies.documents import fill, placeholders
from policies.documents.filling import Value
from policies.table_resources import Places
from stacks.deployments import Deployment
from stacks.environment_document import WAREHOUSE
from stacks.foundation import FoundationOutputs
from stacks.groups import Group
from stacks.reconciler_rights import reconciler_values


def places(deployment: Deployment, foundation: FoundationOutputs, pipelines: Sequence[Pipeline]) -> Places:
    """Return the locations of the pipelines' tables, dead-letter tables and histories."""
    return Places(
        region=deployment.region,
        account=deployment.account,
        table_bucket=foundation.table_bucket,
        warehouse=WAREHOUSE,
        tables=[name for p in pipelines for name in p.tables],
        scope=deployment.scope,
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
        self._made("reader", deployment.reader_principals, key, "Engines and people query tables.")
        runs: dict[str, Value] = {
            **reconciler_values(deployment, foundation, jobs=jobs[INGEST]),
            "log_prefix": [*jobs[INGEST], *jobs[MAINTAIN]],
            "function_log_groups": [],
        }
        self._made("reconciler", deployment.reconciler_principals, {**key, **runs}, "It keeps runs as they are wanted.")

    def _made(self, role: str, principals: Sequence[str], values: Mapping[str, Value], description: str) -> None:
        if not principals:
            return
        wanted = placeholders(role)
        more = {key: value for key, value in values.items() if key in wanted}
        ExecutionRole(
            self,
            role,
            role=self._deployment.names.role(role),
            boundary_arn=self._deployment.names.boundary_arn,
            trust=fill("account_trust", {"principals": list(principals)}),
            policy=fill(role, self._places.values(role, **more)),
            description=description,
        )
