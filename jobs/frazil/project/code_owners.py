"""The owners of a file by a repository's CODEOWNERS, as GitHub reads it.

https://docs.github.com/en/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners
"""

from __future__ import annotations

import re

PLACES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
"""The places where GitHub looks for the file; the first one counts."""

_COMMENT = re.compile(r"(?:^|\s)#.*$")


def owners(text: str, path: str) -> tuple[str, ...]:
    """Return the owners of a path: `@user`, `@org/team`. The last line whose pattern matches counts.

    Addresses of e-mail are omitted, because no comment can be attributed to one. Lines that GitHub refuses are ignored.
    """
    found: tuple[str, ...] = ()
    for line in text.split("\n"):
        pattern, *named = _COMMENT.sub("", line).split() or [""]
        if pattern and not pattern.startswith("!") and not set(pattern) & set("[]\\") and _matches(pattern, path):
            found = tuple(each for each in named if each.startswith("@"))
    return found


def _matches(pattern: str, path: str) -> bool:
    """Return whether a pattern names the path or a folder above it."""
    is_anchored = "/" in pattern.rstrip("/")
    steps = []
    body = pattern.strip("/")
    for part in re.split(r"(\*\*/|/\*\*$|\*\*|\*|\?)", body):
        steps.append(
            {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part))
        )
    # `docs/*` and `/*` name the files of a folder and not those below; each other pattern names a folder with all of its content.
    below = "/.*" if pattern.endswith("/") else "" if pattern.endswith("/*") else "(?:/.*)?"
    return re.fullmatch(("" if is_anchored else "(?:.*/)?") + "".join(steps) + below, path) is not None
