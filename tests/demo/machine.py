"""The requirements of the demonstration, checked before anything starts, and the environment variables of its commands."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from frazil.errors import LocalPartFailed
from frazil.local.toolchain.jars import cache_folder
from infra.confluent import resource
from tests.infra.aws_schema import VERSION as AWS_VERSION
from tests.standin.terraform import SOURCE, StandIn, write_settings

MIRRORS = "FRAZIL_TERRAFORM_MIRRORS"
_ELSEWHERE = ("AWS_", "CONFLUENT_", "TF_", "CDKTF_", "FRAZIL_", "LOCALSTACK_", "GIT_", "PYTHON")
"""Prefixes of variables that may select an account or another checkout."""
_SECONDS = 900


@dataclass(eq=False, kw_only=True)
class Missing(Exception):
    """A requirement is missing. `what` names it, `do` is the remedy."""

    what: str
    do: str

    def __str__(self) -> str:
        return f"{self.what}\n  {self.do}"


def clean(variables: Mapping[str, str], root: Path) -> dict[str, str]:
    """Return the shell's variables without those of accounts, and with the checkout's programs first on the PATH."""
    kept = {name: value for name, value in variables.items() if not name.startswith(_ELSEWHERE)}
    return {
        **kept,
        "PATH": f"{root / '.venv' / 'bin'}{os.pathsep}{kept.get('PATH', os.defpath)}",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "CI": "1",
        "NO_COLOR": "1",
        "CHECKPOINT_DISABLE": "1",
        "DISABLE_VERSION_CHECK": "1",
    }


def terraform_settings(root: Path, folder: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """Write the settings of Terraform's providers into a folder, and check them by installing the providers once.

    Raises `Missing` if a provider is not available.
    """
    stand_in = StandIn(source=root / SOURCE, provider=resource.SOURCE, version=resource.VERSION)
    mirrors = [Path(each) for each in variables.get(MIRRORS, "").split(os.pathsep) if each]
    file = folder / "terraform.rc"
    try:
        write_settings(file, stand_in, mirrors=mirrors)
    except LocalPartFailed as failed:
        raise Missing(what=str(failed), do="The first build needs Go's modules from Go's module proxy") from failed
    settings = {"TF_CLI_CONFIG_FILE": str(file), "CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1"}
    if not mirrors:
        shared = cache_folder() / "terraform" / "providers"  # the AWS provider has 700 MB: fetched once, for all stacks
        shared.mkdir(parents=True, exist_ok=True)
        settings["TF_PLUGIN_CACHE_DIR"] = str(shared)
        settings["TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE"] = "1"
    _try_providers(folder / "providers", {**clean(variables, root), **settings})
    return settings


def _try_providers(folder: Path, settings: Mapping[str, str]) -> None:
    wanted = {
        "aws": {"source": "hashicorp/aws", "version": AWS_VERSION},
        "confluent": {"source": resource.SOURCE, "version": resource.VERSION},
    }
    folder.mkdir(exist_ok=True)
    (folder / "main.tf.json").write_text(json.dumps({"terraform": {"required_providers": wanted}}))
    ended = subprocess.run(
        ["terraform", "init", "-input=false", "-no-color"],
        cwd=folder,
        env=settings,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if ended.returncode:
        raise Missing(
            what=f"Terraform cannot install hashicorp/aws {AWS_VERSION}:\n{ended.stderr.strip()[-600:]}",
            do=f"Let Terraform reach its registry, or name folders that are mirrors of providers: export {MIRRORS}=FOLDER",
        )
