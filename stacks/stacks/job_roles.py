"""IAM roles of the ingest and the maintenance jobs; `policies/documents` has their policies."""

from __future__ import annotations

from frazil.rollout.desired import INGEST, MAINTAIN, job_name
from frazil.rollout.run_proof import proof_prefix
from infra.iam_role import ExecutionRole
from infra.tf import Construct
from policies.documents import fill, placeholders
from policies.table_resources import Places
from stacks.spec.deployments import Deployment
from stacks.stacks.confluent import ConfluentOutputs
from stacks.stacks.foundation import FoundationOutputs

ARTIFACTS = ("artifacts", "releases", "documents")
"""The prefixes of the artifact bucket that jobs read."""
_POLICIES = {INGEST: "ingest_job", MAINTAIN: "maintenance_job"}


def job_role(
    scope: Construct,
    kind: str,
    group: str | None,
    deployment: Deployment,
    foundation: FoundationOutputs,
    confluent: ConfluentOutputs,
    own: Places,
) -> ExecutionRole:
    """Declare the role of a group's job of a kind, with access to its `own` tables, secret and log."""
    document, job, names = _POLICIES[kind], job_name(kind, group), deployment.names
    more = {
        "artifact_bucket": foundation.artifact_bucket,
        "artifact_prefixes": ARTIFACTS,
        "proof_prefix": proof_prefix(job).rstrip("/"),
        "log_bucket": foundation.log_bucket,
        "log_prefix": job,
        "log_group": names.log_group(job),
        "key": foundation.key_arn,
        "secrets": [confluent.secret_arn],
    }
    wanted = placeholders(document)
    values = own.values(document, **{key: value for key, value in more.items() if key in wanted})
    applications = {"applications": foundation.application_ids}
    where = {"account": deployment.account, "region": deployment.region}
    return ExecutionRole(
        scope,
        f"{kind}-role",
        role=names.role(job),
        path=names.path,
        boundary_arn=names.boundary_arn,
        trust=fill("job_trust", {**where, **applications}, partition=names.partition),
        policy=fill(document, values, partition=names.partition),
        description=f"The {job} job's runs.",
    )
