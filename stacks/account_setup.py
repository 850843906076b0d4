"""The owner stack, which the account's owner deploys and the deployer may not change: the boundary, and who deploys and reviews."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from frazil.declaration import Pipeline
from infra.execution_role import ExecutionRole
from infra.github_provider import GithubProvider
from infra.tf import Construct, IamPolicy
from policies.documents import fill
from policies.documents.filling import Value
from stacks.deployments import Deployment, GitHub
from stacks.providers import EnvironmentStack
from stacks.reconciler_rights import DOCUMENTS


class Owner(EnvironmentStack):
    """The owner stack. The account's owner deploys it first. A new namespace or principal changes it."""

    def __init__(self, scope: Construct, deployment: Deployment, pipelines: Sequence[Pipeline]) -> None:
        # The deployer may write states below the environment's name, so this state has a folder of its own.
        super().__init__(scope, "owner", deployment, has_confluent=False, folder=f"owner/{deployment.name}")
        names = deployment.names
        common = _places(deployment, pipelines)
        IamPolicy(self, "boundary", name=names.boundary, policy=json.dumps(boundary(deployment, pipelines)))
        data = ("tables", "tableflow", "artifacts", "logs")
        ExecutionRole(
            self,
            "deployer",
            role=names.deployer,
            boundary_arn=None,
            trust=_trust(deployment, "deploy", deployment.deployer_principals),
            policy=fill(
                "deployer",
                {
                    **_places(deployment, pipelines),
                    "artifact_bucket": names.bucket("artifacts"),
                    "deployed_prefixes": [DOCUMENTS, "desired"],
                    "disposable_buckets": [names.bucket(what) for what in data] if deployment.is_disposable else [],
                    "scheduler_roles": [names.role_arn("scheduler")],
                },
            ),
            description="Terraform makes and changes the stacks of the environment.",
        )
        if deployment.github is not None:
            self._for_github(deployment, deployment.github, common)

    def _for_github(self, deployment: Deployment, github: GitHub, common: Mapping[str, Value]) -> None:
        """Make the role of reviews, and the identity provider that lets workflows assume it."""
        if not github.has_provider:
            GithubProvider(self, "github")
        ExecutionRole(
            self,
            "reviewer",
            role=deployment.names.reviewer,
            boundary_arn=None,
            trust=_trust(deployment, "review", ()),
            policy=fill(
                "reviewer",
                {
                    **common,
                    "artifact_bucket": deployment.names.bucket("artifacts"),
                    "deployed_prefixes": [DOCUMENTS, "desired", "releases"],
                    "review_secrets": list(github.review_secrets),
                },
            ),
            description="Workflows plan the stacks of the environment and change nothing.",
        )


def _trust(deployment: Deployment, what: str, principals: Sequence[str]) -> dict[str, Any]:
    """Return who may assume a role: principals, and workflows of the GitHub environment `<what>-<environment>`."""
    documents = [fill("account_trust", {"principals": list(principals)})] if principals else []
    if deployment.github is not None:
        github = {"repository": deployment.github.repository, "github_environment": f"{what}-{deployment.name}"}
        documents.append(fill("github_trust", {"account": deployment.account, **github}))
    return {**documents[0], "Statement": [each for document in documents for each in document["Statement"]]}


def boundary(deployment: Deployment, pipelines: Sequence[Pipeline]) -> dict[str, Any]:
    """Return the permissions boundary of an environment's roles. It is one policy: IAM takes no boundary in parts."""
    return fill("boundary", _places(deployment, pipelines))


def _places(deployment: Deployment, pipelines: Sequence[Pipeline]) -> dict[str, Value]:
    names = deployment.names
    return {
        "account": deployment.account,
        "region": deployment.region,
        "prefix": names.prefix,
        "environment": deployment.name,
        "state_bucket": names.bucket("state"),
        "databases": sorted({pipeline.table.namespace for pipeline in pipelines}),
    }
