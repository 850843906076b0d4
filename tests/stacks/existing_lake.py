"""An environment whose account has everything already: network, key, buckets, a database, a boundary and rules for names and tags."""

from __future__ import annotations

from infra.network_plan import GivenNetwork
from stacks.spec.deployments import Access, Existing, dev
from stacks.spec.existing import Buckets
from tests.stacks.synthesised import named

KEY = f"arn:aws:kms:{dev.region}:999999999999:key/11111111-2222-4333-8444-555555555555"
BUCKETS = Buckets(tables="lake-tables", tableflow="lake-tableflow", artifacts="lake-artifacts", logs="lake-logs")
SUBNETS = ("subnet-0123456789abcdef0", "subnet-0123456789abcdef1")
NETWORK = GivenNetwork(subnet_ids=SUBNETS, security_group_ids=("sg-0123456789abcdef0",))
TAGS = {"cost-centre": "4711", "Owner": "data platform"}
EXISTING = Existing(
    boundary="company-boundary", key_arn=KEY, buckets=BUCKETS, databases=("nyc",), tags=TAGS, iam_path="/data/lake/"
)
ACCESS = Access(
    deployers=(f"arn:aws:iam::{dev.account}:role/ci",),
    readers=(f"arn:aws:iam::{dev.account}:role/analysts",),
    reconcilers=(f"arn:aws:iam::{dev.account}:role/operators",),
)
GIVEN = named(dev, existing=EXISTING, network=NETWORK, access=ACCESS)
