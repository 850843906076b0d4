"""The names that CDKTF gives to resources."""

from __future__ import annotations

import hashlib
import re

_ID = re.compile("[^A-Za-z0-9_-]")


def unique_name(*path: str) -> str:
    """Return the name of the resource at this path of ids in its stack, as the CDK makes it."""
    if len(path) == 1:
        return _ID.sub("", path[0])
    human = "_".join(_ID.sub("", each) for each in path)
    return f"{human}_{hashlib.md5('/'.join(path).encode(), usedforsecurity=False).hexdigest()[:8].upper()}"
