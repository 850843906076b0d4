"""Terraform itself finds every stack of every environment valid, by schemas that are those which we keep."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from infra.confluent import resource
from stacks.spec.deployments import AlarmsOf, Monitoring
from tests.infra.aws_schema import VERSION, trimmed, used_resources, without_prose
from tests.infra.provider_schema import schema
from tests.stacks.spec.test_groups import PAYMENTS, WIDE
from tests.stacks.synthesised import ALL, EXAMPLE, named, stacks_of, synthesised
from tests.standin.terraform import BUILD_FLAGS
from tests.support.standin import STAND_IN, Terraform

pytestmark = pytest.mark.long


def judged(terraform: Terraform, folder: Path, stack: dict[str, Any]) -> dict[str, Any]:
    """What `terraform validate` says of a stack."""
    (folder / "cdk.tf.json").write_text(json.dumps(stack))
    terraform.prepare(folder, "-backend=false")
    said: dict[str, Any] = json.loads(terraform.run(folder, "validate", "-json").stdout)
    return said


@pytest.mark.parametrize(("environment", "what"), ALL)
def test_terraform_finds_a_stack_valid(environment: str, what: str, terraform: Terraform, tmp_path: Path) -> None:
    said = judged(terraform, tmp_path, stacks_of(environment)[what])
    assert said["valid"], said["diagnostics"]
    assert said["diagnostics"] == []


@pytest.mark.parametrize("alarms", list(AlarmsOf))
def test_terraform_finds_the_stack_of_a_group_valid(alarms: AlarmsOf, terraform: Terraform, tmp_path: Path) -> None:
    stacks = synthesised(
        named(WIDE, monitoring=Monitoring(alarms=alarms)), (*EXAMPLE, *PAYMENTS), former_groups=["gone"]
    )
    for what in ("ingestion", "ingestion-payments", "ingestion-gone"):
        said = judged(terraform, tmp_path, stacks[what])
        assert said["valid"], (what, said["diagnostics"])


def test_the_sdk_takes_the_stand_ins_schemas(terraform: Terraform) -> None:
    """`terraform validate` does not look at them. Flags as of the build: with others, everything is compiled anew."""
    command = ["go", "test", "-vet=off", *BUILD_FLAGS, "./..."]
    settings = {**os.environ, "CGO_ENABLED": "0"}
    ended = subprocess.run(command, cwd=STAND_IN.source, env=settings, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_stand_in_has_the_schema_that_is_kept_of_the_provider(terraform: Terraform, tmp_path: Path) -> None:
    wanted = {"confluent": {"source": resource.SOURCE, "version": resource.VERSION}}
    (tmp_path / "main.tf.json").write_text(json.dumps({"terraform": {"required_providers": wanted}}))
    terraform.prepare(tmp_path)
    told, kept = terraform.schemas(tmp_path)[resource.SOURCE], schema("confluent")
    assert without_prose(told["provider"]["block"]) == kept["provider"]["block"]
    for kinds in ("resource_schemas", "data_source_schemas"):
        assert set(told[kinds]) == set(kept[kinds])
        for name, each in told[kinds].items():
            assert without_prose(each["block"]) == kept[kinds][name]["block"], name


def test_the_kept_schema_of_aws_is_the_providers_own(terraform: Terraform, tmp_path: Path) -> None:
    source = "hashicorp/aws"
    wanted = {"aws": {"source": source, "version": VERSION}}
    (tmp_path / "main.tf.json").write_text(json.dumps({"terraform": {"required_providers": wanted}}))
    terraform.prepare(tmp_path)
    whole = {"provider_schemas": {f"host/{source}": terraform.schemas(tmp_path)[source]}}
    assert trimmed(whole, used_resources()) == schema("aws")
