"""The generation of each desired state, derived from the plan: the deployed number, plus one if anything else differs.

Terraform's state holds the deployed desired state, and a saved plan is refused if that state has changed since. So two
deployments cannot take the same number, and a repeated one takes none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_NUMBER = re.compile(r'"generation":(\d+)')
_PREFIX = "desired/"


def raise_generations(folder: Path, plan: Mapping[str, Any], *, is_again: bool = False) -> bool:
    """Write the generations that a plan calls for into the stack of a folder. Return whether the stack changed.

    A number that a person declares above the derived one counts. `is_again` raises the number of an unchanged desired state,
    so that a generation that was given up runs again.
    """
    file = folder / "cdk.tf.json"
    stack = json.loads(file.read_text("utf-8"))
    changes = {each["address"]: each["change"] for each in plan.get("resource_changes", ())}
    is_changed = False
    for name, arguments in _desired_states(stack):
        declared = int(_NUMBER.findall(arguments["content"])[0])
        number = _number(declared, changes.get(f"aws_s3_object.{name}", {}), is_again)
        if number != declared:
            arguments["content"] = _NUMBER.sub(f'"generation":{number}', arguments["content"], count=1)
            is_changed = True
    if is_changed:
        file.write_text(json.dumps(stack), "utf-8")
    return is_changed


def _desired_states(stack: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, arguments in stack.get("resource", {}).get("aws_s3_object", {}).items():
        if str(arguments.get("key", "")).startswith(_PREFIX) and _NUMBER.search(str(arguments.get("content", ""))):
            yield name, arguments


def _number(declared: int, change: Mapping[str, Any], is_again: bool) -> int:
    before = _content(change.get("before"))
    if before is None:
        return declared
    deployed = int(before["generation"])
    is_same = {**(_content(change.get("after")) or {}), "generation": deployed} == before
    return max(declared, deployed if is_same and not is_again else deployed + 1)


def _content(values: Any) -> dict[str, Any] | None:
    """Return the desired state of a change's side; None if there is none, or if Terraform does not know it yet."""
    content = values.get("content") if isinstance(values, Mapping) else None
    if not isinstance(content, str):
        return None
    found: dict[str, Any] = json.loads(content)
    return found
