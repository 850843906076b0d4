"""Terraform for tests, with the stand-in for Confluent and providers from mirrors.

`FRAZIL_TERRAFORM_MIRRORS` names folders that are mirrors of providers, joined as paths are; without it, providers come from
Terraform's own configuration.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from infra.confluent import resource
from tests.standin.terraform import SOURCE, StandIn, write_settings

STAND_IN = StandIn(source=SOURCE, provider=resource.SOURCE, version=resource.VERSION)
SECONDS = 600


@dataclass(frozen=True, kw_only=True)
class Terraform:
    """Terraform with additional environment variables."""

    program: str
    settings: Mapping[str, str]
    has_mirrors: bool = field(default=False)

    def run(self, folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command. Return its output and exit code."""
        return subprocess.run(
            [self.program, *arguments],
            cwd=folder,
            env={**os.environ, **self.settings, **variables},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def prepare(self, folder: Path, *more: str) -> None:
        """Run `init`. Without mirrors, skip the test if providers are not available."""
        ended = self.run(folder, "init", "-input=false", "-no-color", *more)
        if ended.returncode and not self.has_mirrors:
            pytest.skip(f"not all providers can be had here, set FRAZIL_TERRAFORM_MIRRORS: {ended.stderr[-300:]}")
        assert ended.returncode == 0, ended.stderr

    def schemas(self, folder: Path) -> dict[str, Any]:
        """Return the schemas of a folder's providers, by their names without a host."""
        told = json.loads(self.run(folder, "providers", "schema", "-json").stdout)
        return {name.partition("/")[2]: each for name, each in told["provider_schemas"].items()}


def terraform_with_stand_in(folder: Path) -> Terraform:
    """Terraform, its settings written into a folder. Skips the test when Terraform or Go is not installed."""
    for name in ("terraform", "go"):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")
    mirrors = [Path(each) for each in os.environ.get("FRAZIL_TERRAFORM_MIRRORS", "").split(os.pathsep) if each]
    file = folder / "terraform.rc"
    write_settings(file, STAND_IN, mirrors=mirrors)
    settings = {"TF_CLI_CONFIG_FILE": str(file), "CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1"}
    if not mirrors:
        # One download for all stacks: the AWS provider has 700 MB. Of a mirror, Terraform makes links.
        (folder / "providers").mkdir()
        settings["TF_PLUGIN_CACHE_DIR"] = str(folder / "providers")
        settings["TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE"] = "1"
    return Terraform(program=str(shutil.which("terraform")), settings=settings, has_mirrors=bool(mirrors))
