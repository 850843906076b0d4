"""`python -m stacks.workflow.describe ENV`: print a deployment as JSON, for commands that import none."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from infra.network_plan import GivenNetwork
from policies.documents import fill
from stacks.spec.deployments import DEPLOYMENTS, NO_RELEASE, Deployment
from stacks.spec.reader_keys import READER_KEYS
from stacks.stacks.environment_document import WAREHOUSE
from stacks.workflow.deployed import file_of, read


def main(
    arguments: Sequence[str],
    deployments: Mapping[str, Deployment] = DEPLOYMENTS,
    release: str = NO_RELEASE,
) -> int:
    """Print the description of an environment. Returns 3 if there is no such environment."""
    [name] = arguments
    if name not in deployments:
        print(f"the environment {name} does not exist. Name one of {', '.join(deployments)}", file=sys.stderr)
        return 3
    deployment = deployments[name]
    deployed = read(file_of(deployment, os.environ.get("FRAZIL_DEPLOYED", "")), name)
    members = described(deployment, os.environ.get("FRAZIL_RELEASE", "").strip() or release)
    print(json.dumps({**members, "key_step": None if deployed is None else deployed.key_step or 0}))
    return 0


def described(deployment: Deployment, release: str) -> dict[str, Any]:
    """Return what commands need of a deployment: where it is, what its releases are built for, the names of its parts."""
    names = deployment.names

    deployer, reviewer = (names.iam_arn("role", name) for name in (names.deployer, names.reviewer))
    applications = [names.application(each.label, each.architecture, each.name) for each in deployment.applications]

    return {
        "account": deployment.account,
        "region": deployment.region,
        "label": deployment.emr.label,
        "architecture": deployment.emr.architecture.value,
        "release": release,
        "trusted_keys": list(deployment.access.trusted_keys),
        "artifact_bucket": names.bucket("artifacts"),
        "state_bucket": names.bucket("state"),
        "state_key": f"alias/{names.state_key}",
        "state_bucket_policy": fill(
            "state_bucket",
            {"account": deployment.account, "state_bucket": names.bucket("state")},
            partition=names.partition,
        ),
        "state_key_policy": fill(
            "state_key",
            {
                "account": deployment.account,
                "region": deployment.region,
                "state_readers": [deployer, reviewer],
                "state_writers": [deployer],
            },
            partition=names.partition,
        ),
        "boundary": names.boundary_arn,
        "has_given_boundary": deployment.existing.boundary is not None,
        "has_owner": deployment.access.has_owner,
        "given": _given(deployment),
        "is_local": deployment.is_local,
        "lake_formation": deployment.access.lake_formation,
        "application": applications[0],
        "former_applications": applications[1:],
        "cores": deployment.runs.capacity.cores,
        "mode": deployment.runs.mode.value,
        "names": {
            "prefix": names.prefix,
            "schedule_group": names.schedule_group,
            "log_groups": names.log_group(""),
            "alarm_topic": names.arn("sns", names.prefix),
            "alarm_addresses": len(deployment.monitoring.emails),
            "reader_role": names.role_arn("reader") if deployment.access.readers else None,
        },
        "reader_secret": deployment.confluent.reader_secret or names.secret(READER_KEYS),
        "has_own_keys": deployment.confluent.reader_secret is None,
    }


def _given(deployment: Deployment) -> dict[str, Any]:
    """Return the existing objects that the deployment uses. A database is at its location, or at none."""
    existing, tables = deployment.existing, deployment.names.bucket("tables")
    networks = {each.network.name: each.network for each in deployment.applications if each.network is not None}
    return {
        "buckets": existing.buckets.given,
        "key": existing.key_arn,
        "databases": {name: f"s3://{tables}/{WAREHOUSE}/{name}.db" for name in existing.databases},
        "networks": [
            {"subnets": list(each.subnet_ids), "groups": list(each.security_group_ids), "vpc": each.vpc_id}
            for each in networks.values()
            if isinstance(each, GivenNetwork)
        ],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
