"""`python -m stacks.built_for ENV`: print the EMR label and architecture of an environment as JSON. `frazil release` runs it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from stacks.deployments import DEPLOYMENTS


def main(arguments: Sequence[str]) -> int:
    """Print the EMR label and the processors of an environment. Returns 3 if there is no such environment."""
    [name] = arguments
    if name not in DEPLOYMENTS:
        print(f"the environment {name} does not exist. Name one of {', '.join(DEPLOYMENTS)}", file=sys.stderr)
        return 3
    deployment = DEPLOYMENTS[name]
    print(json.dumps({"label": deployment.label, "architecture": deployment.architecture.value}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
