"""IAM's patterns: `*` matches any text, `?` one character. In ARNs, neither matches across the first five colons."""

from __future__ import annotations

import re
from functools import lru_cache


class Unsupported(NotImplementedError):
    """A policy has an element that the evaluator does not know."""


@lru_cache(maxsize=4096)
def _compiled(pattern: str, *, any_case: bool) -> re.Pattern[str]:
    if "${" in pattern:
        raise Unsupported(f"a policy variable in {pattern!r}")
    known = {"*": ".*", "?": "."}
    text = "".join(known.get(character, re.escape(character)) for character in pattern)
    return re.compile(text, re.DOTALL | (re.IGNORECASE if any_case else 0))


def matches(pattern: str, action: str) -> bool:
    """Return whether a pattern matches an action, ignoring case."""
    return _compiled(pattern, any_case=True).fullmatch(action) is not None


def like(pattern: str, value: str) -> bool:
    """Return whether a pattern matches a text, with case."""
    return _compiled(pattern, any_case=False).fullmatch(value) is not None


def matches_arn(pattern: str, arn: str) -> bool:
    """Return whether a pattern matches an ARN, part by part; the sixth part is the rest. A final `*` matches all further parts.

    Raises `Unsupported` for a pattern of fewer parts that ends otherwise.
    """
    if pattern == "*":
        return True
    wanted, given = pattern.split(":", 5), arn.split(":", 5)
    if len(wanted) < 6 and wanted[-1] != "*":
        raise Unsupported(f"a resource without its six parts: {pattern!r}")
    wanted += ["*"] * (6 - len(wanted))
    return len(given) == 6 and all(like(one, other) for one, other in zip(wanted, given, strict=True))
