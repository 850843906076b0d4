"""The few of Terraform's expressions that stacks use in texts, worked out, as Terraform would when it runs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

_INNER = re.compile(r"(?<!\$)\$\{([^{}]+)\}")
_REPLACE = re.compile(r'replace\((?P<what>.+), "(?P<old>[^"]*)", "(?P<new>[^"]*)"\)')
_SUBSTR = re.compile(r"substr\((?P<what>.+), (?P<start>\d+), (?P<length>\d+)\)")


def worked_out(text: str, stack: Mapping[str, Any], known: Mapping[str, str]) -> str:
    """The text with every `${…}` replaced; `known` tells values by how a reference to them ends."""

    def value(expression: str) -> str:
        expression = expression.strip()
        if found := _REPLACE.fullmatch(expression):
            return value(found["what"]).replace(found["old"], found["new"])
        if found := _SUBSTR.fullmatch(expression):
            start = int(found["start"])
            return value(found["what"])[start : start + int(found["length"])]
        if expression.startswith("sha256("):
            return hashlib.sha256(value(expression[7:-1]).encode()).hexdigest()
        if expression.startswith("local."):
            return worked_out(stack["locals"][expression[6:]], stack, known)
        [told] = [each for ending, each in known.items() if expression.endswith(ending)]
        return told

    return _INNER.sub(lambda found: value(found[1]), text).replace("$${", "${").replace("%%{", "%{")


def policies_of(stack: Mapping[str, Any], role: str, known: Mapping[str, str]) -> list[dict[str, Any]]:
    """The policies of a role, worked out."""
    return [
        json.loads(worked_out(each["policy"], stack, known))
        for each in stack["resource"]["aws_iam_policy"].values()
        if each["name"].rpartition("-")[0] == role
    ]
