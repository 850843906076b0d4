"""Patterns: `*` stands for any text, `?` for one character; in ARNs, neither reaches over the first five colons."""

from __future__ import annotations

import re
from functools import lru_cache


class Unsupported(NotImplementedError):
    """A policy holds what the evaluator does not know, so nothing can be said about it."""


@lru_cache(maxsize=4096)
def _compiled(pattern: str, *, any_case: bool) -> re.Pattern[str]:
    if "${" in pattern:
        raise Unsupported(f"a policy variable in {pattern!r}")
    known = {"*": ".*", "?": "."}
    text = "".join(known.get(character, re.escape(character)) for character in pattern)
    return re.compile(text, re.DOTALL | (re.IGNORECASE if any_case else 0))


def matches(pattern: str, action: str) -> bool:
    """Whether an action is meant; actions are the same in any case."""
    return _compiled(pattern, any_case=True).fullmatch(action) is not None


def like(pattern: str, value: str) -> bool:
    """Whether a text is meant, case by case."""
    return _compiled(pattern, any_case=False).fullmatch(value) is not None


def matches_arn(pattern: str, arn: str) -> bool:
    """Whether a resource is meant: part by part, the sixth being all the rest. A last part of `*` stands for all that follow.

    Raises `Unsupported` for a pattern of fewer parts that ends otherwise.
    """
    if pattern == "*":
        return True
    wanted, given = pattern.split(":", 5), arn.split(":", 5)
    if len(wanted) < 6 and wanted[-1] != "*":
        raise Unsupported(f"a resource without its six parts: {pattern!r}")
    wanted += ["*"] * (6 - len(wanted))
    return len(given) == 6 and all(like(one, other) for one, other in zip(wanted, given, strict=True))
