"""The comparison of the stacks' declarations with the deployed objects, before synthesis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from frazil.errors import InvalidInput
from stacks.compose import Stacks
from stacks.deployed import Deployed, Retired, forgotten, held, read
from stacks.deployments import Deployment


def deployed_before(deployment: Deployment, file: Path, *, is_first: bool) -> Deployed:
    """Read the file of deployed objects. A first deployment without a file has an empty one.

    Raises `InvalidInput` if the file is missing and `is_first` is false.
    """
    found = read(file, deployment.name)
    if found is None and not is_first and not deployment.is_local:
        raise InvalidInput(
            f"the file is missing, so the data of {deployment.name} are not protected from a lost declaration",
            where=str(file),
            do="Restore the committed file. FRAZIL_RELEASE=none creates the first one (docs/deploy.md)",
        )
    return found or Deployed(environment=deployment.name)


def guard(stacks: Stacks, before: Deployed, retired: Sequence[Retired], *, is_open: bool) -> Deployed:
    """Let Terraform forget retired objects and documents in use, and return the file's new content.

    `is_open`: both keys of `Protection` are turned. Raises `InvalidDeclaration` as `Deployed.after` does.
    """
    for stack in stacks.every:
        stack.prepare_stack()  # resolves references between stacks
    content: dict[str, Any] = {stack.node.id: stack.to_terraform() for stack in stacks.every}
    after = before.after(held(content), _documents(content), retired, is_open=is_open)
    for stack in stacks.every:
        blocks = forgotten(after, stack.node.id, content[stack.node.id].get("resource", {}))
        if blocks:
            stack.add_override("removed", blocks)
    return after


def deployed_groups(before: Deployed) -> set[str]:
    """Return the groups whose documents are listed: their stacks may be deployed."""
    prefix = f"{before.environment}-ingestion-"
    stacks = {each.partition("/")[0] for each in before.documents}
    return {stack.removeprefix(prefix) for stack in stacks if stack.startswith(prefix)}


def _documents(content: Mapping[str, Any]) -> list[str]:
    """Return the addresses of the declared documents. A run may read them until it ends."""
    return [
        f"{stack}/aws_s3_object.{address}"
        for stack, each in content.items()
        for address, arguments in each.get("resource", {}).get("aws_s3_object", {}).items()
        if arguments["key"].startswith("documents/")
    ]
