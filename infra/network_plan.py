"""The network of jobs as a deployment declares it: its addresses, or a given one. Values only."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Annotated

from frazil.declaration.checks.constraints import Rule, matching
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import Problem, Refusal

LIMITS = "https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_NetworkConfiguration.html"
MOST_SUBNETS, MOST_GROUPS = 16, 5
"""The most that an application may have (`LIMITS`)."""

_ID = "-(?:[0-9a-f]{8}|[0-9a-f]{17})"
_SUBNET = matching(f"subnet{_ID}", "the id of a subnet", "Write subnet-…")
_GROUP = matching(f"sg{_ID}", "the id of a security group", "Write sg-…")
_VPC = matching(f"vpc{_ID}", "the id of a VPC", "Write vpc-…")
NETWORK_NAME = matching(
    "|[a-z][a-z0-9-]{0,19}", "a network's name", "Use a lower-case letter, then up to 19 of a-z, 0-9, -"
)
_Name = Annotated[str, "Its name within the environment; the first one has none.", NETWORK_NAME]


@declared
class GivenNetwork:
    """An existing network: its private subnets, and either its security groups or its VPC.

    With security groups, deployment creates nothing in the network. With the VPC, it creates the security group of the jobs.
    """

    subnet_ids: Annotated[tuple[Annotated[str, _SUBNET], ...], "Private subnets, in two zones or more."]
    security_group_ids: Annotated[tuple[Annotated[str, _GROUP], ...], "The security groups of the jobs."] = ()
    vpc_id: Annotated[str | None, "The VPC of the subnets, if the jobs' security group does not exist yet.", _VPC] = (
        None
    )
    name: _Name = field(default="", repr=False)

    def _contradictions(self) -> Iterator[Problem]:
        if not 1 <= len(set(self.subnet_ids)) == len(self.subnet_ids) <= MOST_SUBNETS:
            do = f"Write 1 to {MOST_SUBNETS}, each once ({LIMITS})"
            yield Problem("subnet_ids", f"an application cannot have these {len(self.subnet_ids)} subnets", do)
        if len(self.security_group_ids) > MOST_GROUPS:
            what = f"an application cannot have {len(self.security_group_ids)} security groups"
            yield Problem("security_group_ids", what, f"Write at most {MOST_GROUPS} ({LIMITS})")
        elif len(set(self.security_group_ids)) < len(self.security_group_ids):
            yield Problem("security_group_ids", "a security group is there twice", "Write each once")
        if bool(self.security_group_ids) is (self.vpc_id is not None):
            what = "the network has neither security groups nor a VPC, or both"
            yield Problem("security_group_ids", what, "Write security_group_ids or vpc_id")


def _cidr(text: str) -> Refusal | None:
    do = "Write private addresses like 10.20.0.0/20; the prefix 16 to 24"
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError:
        return Refusal(f"{text!r} is not a network", do)
    return None if network.is_private and 16 <= network.prefixlen <= 24 else Refusal(f"{text} does not fit", do)


@declared
class NetworkPlan:
    """The addresses of a network. Jobs reach Confluent by NAT."""

    cidr: Annotated[str, "Its addresses.", Rule(_cidr)]
    zones: Annotated[
        tuple[Annotated[str, matching("[a-z]", "a zone's letter", "Write a, b or c")], ...], "Two zones' letters."
    ] = ("a", "b")
    # Not in `repr`, from which the ingestion stack derives what an application depends on.
    flow_logs: Annotated[bool, "Whether accepted and refused connections are logged."] = field(
        default=False, repr=False
    )
    name: _Name = field(default="", repr=False)
    """Like `flow_logs`, no part of that text."""

    def _contradictions(self) -> Iterator[Problem]:
        if len(set(self.zones)) != 2 or len(self.zones) != 2:
            yield Problem("zones", "a network of jobs has two zones", 'Write two, like ("a", "b")')

    def subnets(self) -> Sequence[str]:
        """Return four equal parts: two private, two public."""
        return [str(part) for part in ipaddress.IPv4Network(self.cidr).subnets(prefixlen_diff=2)]
