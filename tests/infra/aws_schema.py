"""Write `infra/provider_schemas/aws.json`: the AWS provider's own schema, cut to what stacks use.

python -m tests.infra.aws_schema SCHEMA.json     (SCHEMA.json from `terraform providers schema -json`)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.infra.provider_schema import FOLDER

VERSION = "5.100.0"
"""What the bindings 20.1.0 were made of."""
OF_OWNERS = {"aws_iam_openid_connect_provider"}
"""Resources of the owner's stack alone, which has no golden."""
READ = {"aws_secretsmanager_secret_version"}
"""Data sources of stacks that have no golden: the keys of a given account."""
KEPT = {"type", "required", "optional", "computed", "sensitive"}


def trimmed(whole: dict[str, Any], used: set[str]) -> dict[str, Any]:
    """The schema without its prose, and without what no stack uses."""
    [aws] = [each for name, each in whole["provider_schemas"].items() if name.endswith("/hashicorp/aws")]
    return {
        "source": "hashicorp/aws",
        "version": VERSION,
        "provider": {"block": without_prose(_provider_block(aws["provider"]["block"]))},
        "resource_schemas": {
            name: {"block": without_prose(aws["resource_schemas"][name]["block"])} for name in sorted(used)
        },
        "data_source_schemas": {
            name: {"block": without_prose(aws["data_source_schemas"][name]["block"])} for name in sorted(READ)
        },
    }


def used_resources() -> set[str]:
    """The AWS resources in the goldens of all stacks."""
    goldens = Path(__file__).parents[1] / "stacks" / "golden"
    stacks = [json.loads(file.read_text()) for file in goldens.glob("*.json")]
    return {kind for stack in stacks for kind in stack["resource"] if kind.startswith("aws_")} | OF_OWNERS


def _provider_block(block: dict[str, Any]) -> dict[str, Any]:
    ours = {"default_tags", "endpoints"}
    return {**block, "block_types": {name: each for name, each in block["block_types"].items() if name in ours}}


def without_prose(block: dict[str, Any]) -> dict[str, Any]:
    """A block as it is kept: no descriptions, no versions."""
    return {
        "attributes": {
            name: {key: value for key, value in each.items() if key in KEPT}
            for name, each in block.get("attributes", {}).items()
        },
        "block_types": {
            name: {**{k: v for k, v in each.items() if k != "block"}, "block": without_prose(each["block"])}
            for name, each in block.get("block_types", {}).items()
        },
    }


if __name__ == "__main__":
    read = json.loads(Path(sys.argv[1]).read_text())
    text = json.dumps(trimmed(read, used_resources()), sort_keys=True, separators=(",", ":"))
    # One resource a line: small, and still told apart by a diff.
    (FOLDER / "aws.json").write_text(text.replace('"aws_', '\n"aws_') + "\n")
