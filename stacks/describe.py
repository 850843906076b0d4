"""`python -m stacks.describe ENV`: print what a deployment declares, as JSON. Commands run it: they import no deployment."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from policies.documents import fill
from stacks.deployed import file_of, read
from stacks.deployments import DEPLOYMENTS, NO_RELEASE, Deployment
from stacks.reader_keys import READER_KEYS


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

    def role(name: str) -> str:
        return f"arn:aws:iam::{deployment.account}:role/{name}"

    return {
        "account": deployment.account,
        "region": deployment.region,
        "label": deployment.label,
        "architecture": deployment.architecture.value,
        "release": release,
        "trusted_keys": list(deployment.trusted_keys),
        "artifact_bucket": names.bucket("artifacts"),
        "state_bucket": names.bucket("state"),
        "state_key": f"alias/{names.state_key}",
        "state_bucket_policy": fill(
            "state_bucket", {"account": deployment.account, "state_bucket": names.bucket("state")}
        ),
        "state_key_policy": fill(
            "state_key",
            {
                "account": deployment.account,
                "region": deployment.region,
                "state_readers": [role(names.deployer), role(names.reviewer)],
                "state_writers": [role(names.deployer)],
            },
        ),
        "boundary": names.boundary_arn,
        "has_owner": bool(deployment.deployer_principals or deployment.github),
        "is_local": deployment.is_local,
        "cores": deployment.runs.capacity.cores,
        "mode": deployment.runs.mode.value,
        "reader_secret": deployment.confluent.reader_secret or names.secret(READER_KEYS),
        "has_own_keys": deployment.confluent.reader_secret is None,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
