"""What each resource of a stack depends on, by its references and by what is named as a dependency."""

from __future__ import annotations

import json
import re
from typing import Any

REFERENCE = re.compile(r"(?:data\.)?[a-z0-9_]+\.[A-Za-z0-9_-]+")
Closure = frozenset[str]


def closures(stack: dict[str, Any]) -> dict[str, Closure]:
    """The addresses of a stack's resources, each with all that it depends on."""
    known = {
        f"{'data.' if section == 'data' else ''}{kind}.{name}": arguments
        for section in ("resource", "data")
        for kind, named in stack.get(section, {}).items()
        for name, arguments in named.items()
    }
    known |= {f"local.{name}": value for name, value in stack.get("locals", {}).items()}
    near = {
        address: {found for found in REFERENCE.findall(json.dumps(arguments)) if found in known and found != address}
        for address, arguments in known.items()
    }

    def all_of(address: str) -> set[str]:
        found: set[str] = set()
        pending = [address]
        while pending:
            more = near[pending.pop()] - found
            found |= more
            pending += more
        return found

    return {address: frozenset(all_of(address)) for address in known if not address.startswith(("data.", "local."))}
