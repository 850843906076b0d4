"""An environment whose account has everything already: network, key, buckets, a database, a boundary and rules for names and tags."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from frazil.declaration import Pipeline
from infra.network_plan import GivenNetwork
from infra.tf import App
from stacks.spec.deployments import Access, Deployment, Existing, dev
from stacks.spec.existing import Buckets
from stacks.stacks.compose import compose
from tests.stacks.synthesised import AVRO_TEXT, EXAMPLE, EXAMPLE_TOPICS, TODAY, named, release

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


def every_stack(deployment: Deployment, pipelines: Sequence[Pipeline] = EXAMPLE) -> dict[str, dict[str, Any]]:
    """The JSON of all stacks, also of the owner's, by their names without the environment's."""
    with TemporaryDirectory() as folder:
        app = App(outdir=folder)
        compose(
            app,
            deployment,
            pipelines,
            EXAMPLE_TOPICS,
            today=TODAY,
            text_of=lambda file: AVRO_TEXT,
            release=release(deployment.emr.architecture),
        )
        app.synth()
        files = Path(folder).glob("stacks/*/cdk.tf.json")
        return {f.parent.name.removeprefix(f"{deployment.name}-"): json.loads(f.read_text()) for f in files}
