"""Plans of a first deployment, made of synthesised stacks alone: every resource is created. No Terraform and no credentials.

As in the deployment itself, a stack's values are known if they are declared, or of a stack before it. Outputs of those are the
references to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from frazil.release.manifest import MANIFEST, File, Release, Role, Runtime, manifest
from frazil.version import VERSION
from policies.review.plan.plan_gaps import StackPlan
from stacks.spec.deployments import Deployment
from stacks.workflow.deployed import Deployed, file_of, write

NOTE = (
    "This review is made without credentials, as if the account were empty. If no release is named, it assumes one of this "
    "version. Terraform has planned nothing, and nothing can be accepted or applied by this review"
)
_EXPRESSION = re.compile(r"\$\$\{|%%\{|\$\{([^{}]+)\}")
_OUTPUT = re.compile(r"data\.terraform_remote_state\.cross-stack-reference-input-([a-z0-9-]+)\.outputs\.(\S+)")
_ADDRESS = re.compile(r"\b(?:data\.)?[a-z0-9_]+\.[A-Za-z_][A-Za-z0-9_-]*")
_NO_ARGUMENTS = {"//", "lifecycle", "depends_on", "provisioner", "provider", "count", "for_each"}

Json = Mapping[str, Any]


def first_plans(stacks: Mapping[str, Json], pipelines: tuple[Json, ...] = ()) -> Iterator[StackPlan]:
    """Yield the plans of an environment's stacks, by name, in an empty account. `pipelines` are all that are declared."""
    for name, stack in stacks.items():
        yield StackPlan(name=name, synthesised=stack, plan=_Stack(stack, stacks).plan(), pipelines=pipelines)


def settings_of_an_empty_account(deployment: Deployment, folder: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings for a synthesis with nothing deployed, and with a release of this version that does not exist.

    With `trusted_keys`, which have not signed it, the release stays that of the settings or the project.
    """
    write(file_of(deployment, str(folder)), Deployed(environment=deployment.name))
    changed = {**settings, "FRAZIL_DEPLOYED": str(folder)}
    if settings.get("FRAZIL_RELEASE", "").strip() or deployment.access.trusted_keys:
        return changed
    release = Release(
        version=VERSION,
        wheel_sha256="0" * 64,
        is_dirty=False,
        label=deployment.emr.label,
        architecture=deployment.emr.architecture,
        runtime=Runtime(python="3", spark="4", iceberg="1", classes=()),
        files=tuple(File(name=f"{role}.file", role=role, sha256="0" * 64, size_bytes=0) for role in Role),
    )
    file = folder / MANIFEST
    file.write_bytes(manifest(release))
    return {**changed, "FRAZIL_RELEASE": str(file)}


class _Later(Exception):
    """A value is known only after the apply of its stack."""


class _Stack:
    """A stack whose resources do not exist yet."""

    def __init__(self, stack: Json, stacks: Mapping[str, Json]) -> None:
        self._locals, self._stacks = stack.get("locals", {}), stacks
        self._declared: dict[str, Json] = {
            f"{kind}.{name}": {key: value for key, value in values.items() if key not in _NO_ARGUMENTS}
            for kind, named in stack.get("resource", {}).items()
            for name, values in named.items()
        }
        data = {f"data.{kind}.{name}" for kind, named in stack.get("data", {}).items() for name in named}
        self._own = {*self._declared, *data}

    def plan(self) -> dict[str, Any]:
        """Return the plan in the form of `terraform show -json`."""
        changes = []
        for address, values in sorted(self._declared.items()):
            kind, _, name = address.partition(".")
            after, unknown = dict[str, Any](), dict[str, bool]()
            for argument, value in values.items():
                try:
                    after[argument] = self._known(value)
                except _Later:
                    unknown[argument] = True
            change = {"actions": ["create"], "before": None, "after": after, "after_unknown": unknown}
            changes.append({"address": address, "mode": "managed", "type": kind, "name": name, "change": change})
        return {"resource_changes": changes}

    def _known(self, value: Any) -> Any:
        """Return a value with its expressions filled in. Raises `_Later` if one is known only after the apply."""
        if isinstance(value, Mapping):
            return {key: self._known(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self._known(part) for part in value]
        return _EXPRESSION.sub(self._filled, value) if isinstance(value, str) else value

    def _filled(self, found: re.Match[str]) -> str:
        expression = found[1]
        if expression is None:
            return found[0][1:]  # an escaped brace
        if _OUTPUT.search(expression):
            output = _OUTPUT.fullmatch(expression)
            given = (
                self._stacks.get(output[1], {}).get("output", {}).get(output[2], {}).get("value") if output else None
            )
            return given if isinstance(given, str) else found[0]
        addresses = _ADDRESS.findall(expression)
        for local in (each.partition(".")[2] for each in addresses if each.startswith("local.")):
            known = self._known(self._locals[local])
            if expression == f"local.{local}" and isinstance(known, str):
                return known
        address, _, argument = expression.rpartition(".")
        literal = self._declared.get(address, {}).get(argument)
        if isinstance(literal, str):
            return str(self._known(literal))
        if self._own.intersection(addresses):
            raise _Later
        return found[0]
