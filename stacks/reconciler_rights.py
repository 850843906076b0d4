"""What the reconciler may do, as values of its policy: for operators, and for the deployed function."""

from __future__ import annotations

from collections.abc import Sequence

from policies.documents.filling import Value
from stacks.deployments import Deployment
from stacks.foundation import FoundationOutputs

DOCUMENTS = "documents"
"""The prefix of the runs' documents in the artifact bucket."""


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
