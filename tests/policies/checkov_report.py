"""What checkov says of a synthesised stack.

Checkov is given the shape of a plan (`terraform show -json`), made from the stack alone. Its reader of Terraform's JSON would
take a stack as it is, but leaves the texts of IAM policies unread: six of its checks then say nothing of any policy.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_EXPRESSION = re.compile(r"(?<!\$)\$\{(.+?)\}", re.DOTALL)
_REFERENCE = re.compile(r"((?:data\.)?[a-z0-9_]+\.[A-Za-z0-9_-]+)\.[a-z0-9_]+")
_META = {"//", "depends_on", "lifecycle", "provider", "count", "for_each", "connection", "provisioner"}
_OPTIONS = ("--framework", "terraform_plan", "--skip-download", "--soft-fail", "--output", "json")
_NOWHERE = "http://127.0.0.1:9"
"""A proxy that does not exist: whoever asks the network anything fails at once."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Verdict:
    """What one check says of one resource."""

    check: str
    address: str
    claim: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What checkov says of one stack."""

    failed: frozenset[Verdict]
    resources: int


def planned(stack: Mapping[str, Any]) -> dict[str, Any]:
    """A plan that makes everything of a stack. What is known after it was applied stays as it is written, `${…}`."""
    resources = [
        {
            "address": f"{kind}.{name}",
            "mode": "managed",
            "type": kind,
            "name": name,
            "values": {key: value for key, value in arguments.items() if key not in _META},
        }
        for kind, named in stack.get("resource", {}).items()
        for name, arguments in named.items()
    ]
    configured = [{**each, "expressions": _expressions(each["values"])} for each in resources]
    providers = {
        name: {"name": name, "expressions": {key: {"constant_value": value} for key, value in each.items()}}
        for name, given in stack.get("provider", {}).items()
        for each in given
    }
    return {
        "format_version": "1.2",
        "terraform_version": "1.5.7",
        "planned_values": {"root_module": {"resources": resources}},
        "configuration": {"provider_config": providers, "root_module": {"resources": configured}},
    }


def _expressions(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What each argument, and each of its blocks', refers to: by this, checkov knows which resources belong together."""
    found: dict[str, Any] = {}
    for name, value in arguments.items():
        if isinstance(value, list) and any(isinstance(each, dict) for each in value):
            found[name] = [_expressions(each) for each in value]
        elif isinstance(value, dict):
            found[name] = [_expressions(value)]
        else:
            found[name] = {"references": list(_references(value))}
    return found


def _references(value: Any) -> Iterator[str]:
    """A reference to an attribute is told twice, as Terraform does: with the attribute, and without."""
    for expression in _EXPRESSION.findall(json.dumps(value)):
        for found in _REFERENCE.finditer(expression):
            yield from (found[0], found[1])


def report(python: Path, stack: Mapping[str, Any], folder: Path) -> Report:
    """Run checkov, with an empty folder as its home, so that nobody's settings are read, and without a network."""
    file = folder / "plan.json"
    file.write_text(json.dumps(planned(stack), indent=1))
    ended = subprocess.run(
        [python, "-I", "-m", "checkov.main", "--file", file, *_OPTIONS],
        cwd=folder,
        env={
            "PATH": os.defpath,
            "HOME": str(folder),
            "CKV_SKIP_PACKAGE_UPDATE_CHECK": "true",
            "HTTP_PROXY": _NOWHERE,
            "HTTPS_PROXY": _NOWHERE,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    results = told["results"]
    assert not results["parsing_errors"]
    assert not results["skipped_checks"]
    return Report(
        failed=frozenset(_verdicts(results["failed_checks"])),
        resources=told["summary"]["resource_count"],
    )


def _verdicts(records: list[dict[str, Any]]) -> Iterator[Verdict]:
    for record in records:
        yield Verdict(check=record["check_id"], address=record["resource"], claim=record["check_name"])
