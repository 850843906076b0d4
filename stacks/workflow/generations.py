"""The generation of each desired state, derived from the plan: the deployed number, plus one if anything else differs.

Terraform's state holds the deployed desired state, and a saved plan is refused if that state has changed since. So two
deployments cannot take the same number, and a repeated one takes none.

The state is read before the plan is made. It says the number unless only values differ that Terraform computes, so that
most stacks are planned once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

_NUMBER = re.compile(r'"generation":(\d+)')
_PREFIX = "desired/"
_EXPRESSION = "${"
"""Begins a value that Terraform computes."""


def has_generations(folder: Path) -> bool:
    """Return whether the stack of a folder has desired states."""
    return any(_desired_states(json.loads((folder / "cdk.tf.json").read_text("utf-8"))))


def expect_generations(folder: Path, state: Mapping[str, Any], *, is_again: bool = False) -> None:
    """Write the generations that Terraform's state calls for into the stack of a folder: never a higher one than the plan would."""
    deployed = {
        f"aws_s3_object.{each['name']}": one["attributes"]
        for each in state.get("resources", ())
        if each["type"] == "aws_s3_object"
        for one in each["instances"]
    }

    def number(address: str, content: str) -> int:
        declared, before = _declared(content), _content(deployed.get(address))
        if before is None:
            return declared
        known = {key: value for key, value in _known(content).items() if key != "generation"}
        is_same = all(before.get(key) == value for key, value in known.items())
        return _next(declared, int(before["generation"]), is_same=is_same, is_again=is_again)

    _rewrite(folder, number)


def raise_generations(folder: Path, plan: Mapping[str, Any], *, is_again: bool = False) -> bool:
    """Write the generations that a plan calls for into the stack of a folder. Return whether the stack changed.

    A number that a person declares above the derived one counts. `is_again` raises the number of an unchanged desired state,
    so that a generation that was given up runs again.
    """
    changes = {each["address"]: each["change"] for each in plan.get("resource_changes", ())}

    def number(address: str, content: str) -> int:
        declared, change = _declared(content), changes.get(address, {})
        before = _content(change.get("before"))
        if before is None:
            return declared
        deployed = int(before["generation"])
        is_same = {**(_content(change.get("after")) or {}), "generation": deployed} == before
        return _next(declared, deployed, is_same=is_same, is_again=is_again)

    return _rewrite(folder, number)


def _rewrite(folder: Path, number: Callable[[str, str], int]) -> bool:
    """Write the numbers, each a function of a desired state's address and content. Return whether the stack changed."""
    file = folder / "cdk.tf.json"
    stack = json.loads(file.read_text("utf-8"))
    is_changed = False
    for name, arguments in _desired_states(stack):
        content = arguments["content"]
        wanted = number(f"aws_s3_object.{name}", content)
        if wanted != _declared(content):
            arguments["content"] = _NUMBER.sub(f'"generation":{wanted}', content, count=1)
            is_changed = True
    if is_changed:
        file.write_text(json.dumps(stack), "utf-8")
    return is_changed


def _desired_states(stack: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, arguments in stack.get("resource", {}).get("aws_s3_object", {}).items():
        if str(arguments.get("key", "")).startswith(_PREFIX) and _NUMBER.search(str(arguments.get("content", ""))):
            yield name, arguments


def _declared(content: str) -> int:
    return int(_NUMBER.findall(content)[0])


def _known(content: str) -> dict[str, Any]:
    """Return the fields that Terraform does not compute; none if an expression has quotes, so that the text is no JSON."""
    try:
        fields = json.loads(content).items()
    except ValueError:
        return {}
    return {key: value for key, value in fields if _EXPRESSION not in json.dumps(value)}


def _next(declared: int, deployed: int, *, is_same: bool, is_again: bool) -> int:
    return max(declared, deployed if is_same and not is_again else deployed + 1)


def _content(values: Any) -> dict[str, Any] | None:
    """Return the desired state of a change's side; None if there is none, or if Terraform does not know it yet."""
    content = values.get("content") if isinstance(values, Mapping) else None
    if not isinstance(content, str):
        return None
    found: dict[str, Any] = json.loads(content)
    return found
