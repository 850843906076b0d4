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


class _Stack:
    """A stack whose resources do not exist yet."""

    def __init__(self, stack: Json, stacks: Mapping[str, Json]) -> None:
        self._stack, self._stacks = stack, stacks
        self._declared: dict[str, Json] = {
            f"{kind}.{name}": {key: value for key, value in values.items() if key not in _NO_ARGUMENTS}
            for kind, named in stack.get("resource", {}).items()
            for name, values in named.items()
        }
        self._data = {f"data.{kind}.{name}" for kind, named in stack.get("data", {}).items() for name in named}

    def plan(self) -> dict[str, Any]:
        """Return the plan in the form of `terraform show -json`."""
        changes = []
        for address, values in sorted(self._declared.items()):
            kind, _, name = address.partition(".")
            later = [argument for argument, value in values.items() if self._is_later(value)]
            after = {argument: self._known(value) for argument, value in values.items() if argument not in later}
            resource = {"address": address, "mode": "managed", "type": kind, "name": name}
            unknown = dict.fromkeys(later, True)
            change = {"actions": ["create"], "before": None, "after": after, "after_unknown": unknown}
            changes.append({**resource, "change": change})
        return {"resource_changes": changes}

    def _is_later(self, value: Any) -> bool:
        """Return whether a part of a value is known only after the apply of this stack."""
        return any(self._is_later_one(expression) for expression in _expressions(value))

    def _is_later_one(self, expression: str) -> bool:
        if _OUTPUT.search(expression):
            return False
        if any(self._is_later(local) for local in self._locals(expression)):
            return True
        own = {found for found in _ADDRESS.findall(expression) if found in self._declared or found in self._data}
        return bool(own) and self._literal(expression) is None

    def _locals(self, expression: str) -> list[Any]:
        known = self._stack.get("locals", {})
        return [known[found.partition(".")[2]] for found in _ADDRESS.findall(expression) if found.startswith("local.")]

    def _literal(self, expression: str) -> str | None:
        """Return the declared text that an expression refers to; None for another expression."""
        address, _, argument = expression.rpartition(".")
        value = self._declared.get(address, {}).get(argument)
        return str(self._known(value)) if isinstance(value, str) and not self._is_later(value) else None

    def _known(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: self._known(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self._known(part) for part in value]
        return _EXPRESSION.sub(self._replaced, value) if isinstance(value, str) else value

    def _replaced(self, found: re.Match[str]) -> str:
        expression = found[1]
        if expression is None:
            return found[0][1:]  # an escaped brace
        if output := _OUTPUT.fullmatch(expression):
            given = self._stacks.get(output[1], {}).get("output", {}).get(output[2], {}).get("value")
            return given if isinstance(given, str) else found[0]
        if expression.startswith("local.") and isinstance(local := self._locals(expression)[0], str):
            return str(self._known(local))
        literal = self._literal(expression)
        return found[0] if literal is None else literal


def _expressions(value: Any) -> list[str]:
    """Return the expressions in a value."""
    if isinstance(value, str):
        return [found[1] for found in _EXPRESSION.finditer(value) if found[1]]
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [expression for part in parts for expression in _expressions(part)]
