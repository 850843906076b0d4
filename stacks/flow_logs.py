"""The log of connections in the network that deployment creates, for auditors."""

from __future__ import annotations

from infra.execution_role import ExecutionRole
from infra.given_network import GivenNetwork
from infra.network_plan import NetworkPlan
from infra.tf import CloudwatchLogGroup, Construct, FlowLog
from policies.documents import fill
from stacks.deployments import Deployment

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
        role=names.role(FLOW_LOGS),
        path=names.path,
        boundary_arn=names.boundary_arn,
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
