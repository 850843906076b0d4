"""The security group of jobs: what they may reach. Nothing outside reaches them."""

from __future__ import annotations

from infra.tf import Construct, SecurityGroup, VpcSecurityGroupEgressRule, VpcSecurityGroupIngressRule

KAFKA_PORT = 9092
HTTPS_PORT = 443


def jobs_group(scope: Construct, *, vpc_id: str, kafka_cidr: str = "0.0.0.0/0") -> SecurityGroup:
    """Declare the group, with its rules. `kafka_cidr`: where brokers are."""
    group = SecurityGroup(scope, "jobs-group", vpc_id=vpc_id, description="What jobs may reach; nothing reaches them.")
    _let_workers_talk(scope, group)
    for port, cidr in ((HTTPS_PORT, "0.0.0.0/0"), (KAFKA_PORT, kafka_cidr)):
        VpcSecurityGroupEgressRule(
            scope,
            f"out-{port}",
            security_group_id=group.id,
            ip_protocol="tcp",
            from_port=port,
            to_port=port,
            cidr_ipv4=cidr,
        )
    return group


def _let_workers_talk(scope: Construct, group: SecurityGroup) -> None:
    """Let driver and executors of a run reach each other, by whatever port Spark takes."""
    VpcSecurityGroupIngressRule(
        scope,
        "in-workers",
        security_group_id=group.id,
        referenced_security_group_id=group.id,
        ip_protocol="-1",
    )
    VpcSecurityGroupEgressRule(
        scope,
        "out-workers",
        security_group_id=group.id,
        referenced_security_group_id=group.id,
        ip_protocol="-1",
    )
