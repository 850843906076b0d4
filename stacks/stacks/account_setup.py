"""The owner stack, which the account's owner deploys and the deployer may not change: the boundary, and who deploys and reviews."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from frazil.declaration import Pipeline
from infra.iam_role import ExecutionRole
from infra.network_plan import GivenNetwork, NetworkPlan
from infra.tf import CloudwatchLogGroup, Construct, FlowLog, IamOpenidConnectProvider, IamPolicy
from policies.documents import fill, placeholders
from policies.documents.filling import Value
from stacks.spec.deployments import Deployment, GitHub, Workgroup
from stacks.stacks.providers import EnvironmentStack

ISSUER = "https://token.actions.githubusercontent.com"
AUDIENCE = "sts.amazonaws.com"


DOCUMENTS = "documents"
"""The prefix of the runs' documents in the artifact bucket."""
FLOW_LOGS = "flow-logs"
"""The name of role and log group, without the environment."""


def has_flow_logs(network: NetworkPlan | GivenNetwork) -> bool:
    """Return whether the network is logged. A given one is the business of its owner."""
    return isinstance(network, NetworkPlan) and network.flow_logs


def declare_flow_logs(scope: Construct, deployment: Deployment, *, vpc_id: str, key_arn: str, log_days: int) -> None:
    """Declare the log of all connections of a VPC, and the role by which AWS writes it."""
    names, group = deployment.names, deployment.names.log_group(FLOW_LOGS)
    where = {"account": deployment.account, "region": deployment.region}
    log = CloudwatchLogGroup(scope, f"{FLOW_LOGS}-log", name=group, retention_in_days=log_days, kms_key_id=key_arn)
    role = ExecutionRole(
        scope,
        f"{FLOW_LOGS}-role",
        names=names,
        role=names.role(FLOW_LOGS),
        trust=fill("flow_logs_trust", where, partition=names.partition),
        policy=fill("flow_logs", {**where, "log_group": group}, partition=names.partition),
        description="VPC flow logs are written to CloudWatch Logs.",
    )
    FlowLog(
        scope,
        FLOW_LOGS,
        vpc_id=vpc_id,
        traffic_type="ALL",
        log_destination_type="cloud-watch-logs",
        log_destination=log.arn,
        iam_role_arn=role.arn,
        depends_on=list(role.ready),
    )


class Owner(EnvironmentStack):
    """The owner stack. The account's owner deploys it first. A new namespace or principal changes it."""

    def __init__(self, scope: Construct, deployment: Deployment, pipelines: Sequence[Pipeline]) -> None:
        # The deployer may write states below the environment's name, so this state has a folder of its own.
        super().__init__(scope, "owner", deployment, has_confluent=False, folder=f"owner/{deployment.name}")
        names = deployment.names
        if deployment.existing.boundary is None:
            IamPolicy(
                self,
                "boundary",
                name=names.boundary,
                path=names.path if names.path != "/" else None,
                policy=json.dumps(boundary(deployment, pipelines)),
            )
        own = {"tables", "tableflow", "artifacts", "logs"} - deployment.existing.buckets.given.keys()
        disposable = [names.bucket(what) for what in sorted(own)] if deployment.is_disposable else []
        ExecutionRole(
            self,
            "deployer",
            names=names,
            role=names.deployer,
            is_bounded=False,
            trust=_trust(deployment, "deploy", deployment.access.deployers),
            policy=_filled(
                "deployer",
                deployment,
                pipelines,
                deployed_prefixes=[DOCUMENTS, "desired"],
                disposable_buckets=disposable,
                scheduler_roles=[names.role_arn("scheduler")],
            ),
            description="Terraform makes and changes the stacks of the environment.",
        )
        if deployment.access.github is not None:
            self._for_github(deployment, deployment.access.github, pipelines)

    def _for_github(self, deployment: Deployment, github: GitHub, pipelines: Sequence[Pipeline]) -> None:
        """Make the role of reviews, and the identity provider that lets workflows assume it."""
        if not github.has_provider:
            IamOpenidConnectProvider(Construct(self, "github"), "provider", url=ISSUER, client_id_list=[AUDIENCE])
        ExecutionRole(
            self,
            "reviewer",
            names=deployment.names,
            role=deployment.names.reviewer,
            is_bounded=False,
            trust=_trust(deployment, "review", ()),
            policy=_filled(
                "reviewer",
                deployment,
                pipelines,
                deployed_prefixes=[DOCUMENTS, "desired", "releases"],
                review_secrets=list(github.review_secrets),
            ),
            description="Workflows plan the stacks of the environment and change nothing.",
        )


def _trust(deployment: Deployment, what: str, principals: Sequence[str]) -> dict[str, Any]:
    """Return who may assume a role: principals, and workflows of the GitHub environment `<what>-<environment>`."""
    documents = [fill("account_trust", {"principals": list(principals)})] if principals else []
    if deployment.access.github is not None:
        github = {"repository": deployment.access.github.repository, "github_environment": f"{what}-{deployment.name}"}
        trust = fill("github_trust", {"account": deployment.account, **github}, partition=deployment.names.partition)
        documents.append(trust)
    return {**documents[0], "Statement": [each for document in documents for each in document["Statement"]]}


def boundary(deployment: Deployment, pipelines: Sequence[Pipeline]) -> dict[str, Any]:
    """Return the permissions boundary of an environment's roles. It is one policy: IAM takes no boundary in parts."""
    databases = sorted({pipeline.table.namespace for pipeline in pipelines})
    return _filled("boundary", deployment, pipelines, databases=databases)


def _filled(document: str, deployment: Deployment, pipelines: Sequence[Pipeline], **more: Value) -> dict[str, Any]:
    """Return a policy of the environment. It takes those of the common values that it has placeholders for, and `more`."""
    names, existing, network = deployment.names, deployment.existing, deployment.network
    vpcs = [network.vpc_id] if isinstance(network, GivenNetwork) and network.vpc_id else []
    common: dict[str, Value] = {
        "account": deployment.account,
        "region": deployment.region,
        "prefix": names.prefix,
        "environment": deployment.name,
        "iam_path": names.path,
        "boundary": names.boundary_arn,
        "state_bucket": names.bucket("state"),
        "artifact_bucket": names.bucket("artifacts"),
        "databases": sorted({pipeline.table.namespace for pipeline in pipelines} - {*existing.databases}),
        "given_buckets": sorted(existing.buckets.given.values()),
        "given_databases": sorted(existing.databases),
        "given_artifact_buckets": [existing.buckets.artifacts] if existing.buckets.artifacts else [],
        "given_keys": [existing.key_arn] if existing.key_arn else [],
        "given_vpcs": vpcs,
        "own_workgroups": [names.prefix] if isinstance(deployment.access.athena_workgroup, Workgroup) else [],
        "lake_formation_regions": [deployment.region] if deployment.access.lake_formation else [],
        "flow_log_roles": [names.role_arn(FLOW_LOGS)] if has_flow_logs(network) else [],
    }
    wanted = placeholders(document)
    values = {**{key: value for key, value in common.items() if key in wanted}, **more}
    return fill(document, values, partition=names.partition)
