"""An existing network for jobs. Values only; `job_network.py` uses it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

from frazil.declaration.checks.constraints import matching
from frazil.declaration.checks.problems import Problem
from frazil.declaration.checks.validation import validate
from infra.network_plan import NETWORK_NAME

LIMITS = "https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_NetworkConfiguration.html"
MOST_SUBNETS, MOST_GROUPS = 16, 5
"""How many an application may have (`LIMITS`)."""

_ID = "-(?:[0-9a-f]{8}|[0-9a-f]{17})"
_SUBNET = matching(f"subnet{_ID}", "the id of a subnet", "Write subnet-…")
_GROUP = matching(f"sg{_ID}", "the id of a security group", "Write sg-…")
_VPC = matching(f"vpc{_ID}", "the id of a VPC", "Write vpc-…")


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenNetwork:
    """An existing network: its private subnets, and either its security groups or its VPC.

    With security groups, deployment creates nothing in the network. With the VPC, it creates the security group of the jobs.
    """

    subnet_ids: Annotated[tuple[Annotated[str, _SUBNET], ...], "Private subnets, in two zones or more."]
    security_group_ids: Annotated[tuple[Annotated[str, _GROUP], ...], "The security groups of the jobs."] = ()
    vpc_id: Annotated[str | None, "The VPC of the subnets, if the jobs' security group does not exist yet.", _VPC] = (
        None
    )
    name: Annotated[str, "Its name within the environment; the first one has none.", NETWORK_NAME] = field(
        default="", repr=False
    )

    def __post_init__(self) -> None:
        validate(self, self._contradictions)

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
