"""Terraform itself finds every stack of every environment valid.

Providers come from folders that are mirrors: `FRAZIL_TERRAFORM_MIRRORS`, joined as paths are; without it, from wherever
Terraform is set up to find them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stacks.synthesised import ALL, stacks_of

pytestmark = pytest.mark.long

Terraform = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def terraform(tmp_path_factory: pytest.TempPathFactory) -> Terraform:
    """Runs Terraform in a folder."""
    program = shutil.which("terraform")
    if program is None:
        pytest.skip("terraform is not installed")
    settings = dict(os.environ, CHECKPOINT_DISABLE="1")
    if mirrors := os.environ.get("FRAZIL_TERRAFORM_MIRRORS"):
        listed = "\n".join(f'  filesystem_mirror {{ path = "{folder}" }}' for folder in mirrors.split(os.pathsep))
        file = tmp_path_factory.mktemp("terraform") / "rc"
        file.write_text(f"provider_installation {{\n{listed}\n}}\n")
        settings["TF_CLI_CONFIG_FILE"] = str(file)
    else:
        # One download for all stacks: the AWS provider has 700 MB. Of a mirror, Terraform makes links.
        settings["TF_PLUGIN_CACHE_DIR"] = str(tmp_path_factory.mktemp("providers"))
        settings["TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE"] = "1"

    def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, *arguments], cwd=folder, env=settings, capture_output=True, text=True, check=False
        )

    return run


@pytest.mark.parametrize(("environment", "what"), ALL)
def test_terraform_finds_a_stack_valid(environment: str, what: str, terraform: Terraform, tmp_path: Path) -> None:
    (tmp_path / "cdk.tf.json").write_text(json.dumps(stacks_of(environment)[what]))
    prepared = terraform(tmp_path, "init", "-backend=false", "-input=false", "-no-color")
    if prepared.returncode:
        wanted = ", ".join(sorted(stacks_of(environment)[what]["provider"]))
        pytest.skip(f"not all of the providers {wanted} can be had here: set FRAZIL_TERRAFORM_MIRRORS")
    ended = terraform(tmp_path, "validate", "-json")
    told = json.loads(ended.stdout)
    assert told["valid"], told["diagnostics"]
