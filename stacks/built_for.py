"""`python -m stacks.built_for ENV`: print the EMR label and architecture of an environment as JSON. `frazil release` runs it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence

from stacks.deployments import DEPLOYMENTS, Deployment


def main(arguments: Sequence[str], deployments: Mapping[str, Deployment] = DEPLOYMENTS) -> int:
    """Print the EMR label and the processors of an environment. Returns 3 if there is no such environment."""
    [name] = arguments
    if name not in deployments:
        print(f"the environment {name} does not exist. Name one of {', '.join(deployments)}", file=sys.stderr)
        return 3
    deployment = deployments[name]
    print(json.dumps({"label": deployment.label, "architecture": deployment.architecture.value}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
