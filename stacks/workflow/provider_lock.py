"""The lock of Terraform's providers: which packages reviews and deployments accept, by their hashes.

    python -m stacks.workflow.provider_lock          writes `.terraform.lock.hcl`; a project runs `python infra_app.py lock`

Each stack is initialised with the part of the lock that it needs. If the lock has all of its providers, Terraform may not
change it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infra.confluent import resource

NAME = ".terraform.lock.hcl"
PROVIDERS = {"hashicorp/aws": "5.100.0", resource.SOURCE: resource.VERSION}
"""The providers of all stacks, with their versions."""
PLATFORMS = ("linux_amd64", "linux_arm64", "darwin_arm64")
_BLOCK = re.compile(r'^provider "(?P<address>[^"]+)" \{\n.*?^\}\n', re.MULTILINE | re.DOTALL)
_REGISTRY = "registry.terraform.io"


def lock_stack(folder: Path, stack: Mapping[str, Any], lock: Path) -> bool:
    """Write the part of the lock that a stack needs into its folder. Return whether it has all of the stack's providers."""
    text = lock.read_text("utf-8") if lock.is_file() else ""
    blocks = {found["address"]: found[0] for found in _BLOCK.finditer(text)}
    sources = [each["source"].split("/") for each in stack.get("terraform", {}).get("required_providers", {}).values()]
    # In full: `aws` is registry.terraform.io/hashicorp/aws.
    wanted = ["/".join([*[_REGISTRY, "hashicorp"][: 3 - len(parts)], *parts]) for parts in sources]
    kept = [blocks[each] for each in sorted(wanted) if each in blocks]
    if kept:
        (folder / NAME).write_text("\n".join(kept), "utf-8")
    return bool(wanted) and len(kept) == len(wanted)


def main() -> int:
    """Write the lock of this folder for all platforms. Return the exit code of Terraform."""
    terraform = shutil.which("terraform")
    if terraform is None:
        print("error: terraform is not installed", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="frazil-lock-") as folder:
        names = {source.rpartition("/")[2]: {"source": source, "version": v} for source, v in PROVIDERS.items()}
        (Path(folder) / "main.tf.json").write_text(json.dumps({"terraform": {"required_providers": names}}))
        command = [terraform, "providers", "lock", *(f"-platform={each}" for each in PLATFORMS)]
        ended = subprocess.run(command, cwd=folder, check=False)
        if ended.returncode == 0:
            shutil.copyfile(Path(folder) / NAME, NAME)
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
