"""The network of jobs: two private subnets, and the ways out that jobs need. Nothing comes in."""

from __future__ import annotations

from infra.network_plan import GivenNetwork, NetworkPlan
from infra.tf import (
    Construct,
    Eip,
    InternetGateway,
    NatGateway,
    Route,
    RouteTable,
    RouteTableAssociation,
    SecurityGroup,
    Subnet,
    Vpc,
    VpcEndpoint,
    VpcSecurityGroupEgressRule,
    VpcSecurityGroupIngressRule,
)

KAFKA_PORT = 9092
HTTPS_PORT = 443
ANYWHERE = "0.0.0.0/0"


def jobs_group(scope: Construct, *, vpc_id: str) -> SecurityGroup:
    """Declare the group, with its rules."""
    group = SecurityGroup(scope, "jobs-group", vpc_id=vpc_id, description="What jobs may reach; nothing reaches them.")
    # Driver and executors of a run reach each other, by whatever port Spark takes.
    for rule, name in ((VpcSecurityGroupIngressRule, "in-workers"), (VpcSecurityGroupEgressRule, "out-workers")):
        rule(scope, name, security_group_id=group.id, referenced_security_group_id=group.id, ip_protocol="-1")
    for port in (HTTPS_PORT, KAFKA_PORT):
        VpcSecurityGroupEgressRule(
            scope,
            f"out-{port}",
            security_group_id=group.id,
            ip_protocol="tcp",
            from_port=port,
            to_port=port,
            cidr_ipv4=ANYWHERE,
        )
    return group


class JobNetwork(Construct):
    """A VPC of its own. Jobs reach S3 by a gateway, and by TCP 443 and 9092 what else they need."""

    def __init__(self, scope: Construct, name: str, *, plan: NetworkPlan, region: str) -> None:
        super().__init__(scope, name)
        self._region, self._plan = region, plan
        self._vpc = Vpc(self, "vpc", cidr_block=plan.cidr, enable_dns_support=True, enable_dns_hostnames=True)
        self.vpc_id: str = self._vpc.id
        parts = plan.subnets()
        private = [self._subnet("jobs", zone, part) for zone, part in zip(plan.zones, parts, strict=False)]
        self.subnet_ids: list[str] = [subnet.id for subnet in private]
        self._table = RouteTable(self, "jobs-routes", vpc_id=self._vpc.id)
        for zone, subnet in zip(plan.zones, private, strict=True):
            RouteTableAssociation(self, f"jobs-{zone}-routes", subnet_id=subnet.id, route_table_id=self._table.id)
        self.security_group_ids = [jobs_group(self, vpc_id=self._vpc.id).id]
        VpcEndpoint(
            self,
            "s3",
            vpc_id=self._vpc.id,
            vpc_endpoint_type="Gateway",
            service_name=f"com.amazonaws.{region}.s3",
            route_table_ids=[self._table.id],
        )
        self._nat(parts[2])

    def _subnet(self, what: str, zone: str, cidr: str) -> Subnet:
        return Subnet(
            self, f"{what}-{zone}", vpc_id=self._vpc.id, cidr_block=cidr, availability_zone=f"{self._region}{zone}"
        )

    def _nat(self, cidr: str) -> None:
        """Add one gateway for both zones: a zone's failure stops reading, and loses nothing."""
        public = self._subnet("public", self._plan.zones[0], cidr)
        gateway = InternetGateway(self, "internet", vpc_id=self._vpc.id)
        routes = RouteTable(self, "public-routes", vpc_id=self._vpc.id)
        Route(
            self,
            "public-out",
            route_table_id=routes.id,
            destination_cidr_block=ANYWHERE,
            gateway_id=gateway.id,
        )
        RouteTableAssociation(self, "public-routed", subnet_id=public.id, route_table_id=routes.id)
        address = Eip(self, "nat-address", domain="vpc", depends_on=[gateway])
        nat = NatGateway(self, "nat", subnet_id=public.id, allocation_id=address.id, depends_on=[gateway])
        Route(
            self,
            "jobs-out",
            route_table_id=self._table.id,
            destination_cidr_block=ANYWHERE,
            nat_gateway_id=nat.id,
        )


class JobsInGivenNetwork(Construct):
    """An existing network, in which only the security group of the jobs is made, if none is given."""

    def __init__(self, scope: Construct, name: str, *, network: GivenNetwork) -> None:
        super().__init__(scope, name)
        self.subnet_ids = [*network.subnet_ids]
        self.security_group_ids = [*network.security_group_ids]
        if network.vpc_id is not None:
            self.security_group_ids.append(jobs_group(self, vpc_id=network.vpc_id).id)


def job_network(
    scope: Construct, name: str, network: NetworkPlan | GivenNetwork, region: str
) -> JobNetwork | JobsInGivenNetwork:
    """Declare the network of jobs, or use the given one."""
    if isinstance(network, GivenNetwork):
        return JobsInGivenNetwork(scope, name, network=network)
    return JobNetwork(scope, name, plan=network, region=region)
