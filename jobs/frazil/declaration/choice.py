"""The nearest known name of a misspelt one."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from frazil.declaration.problems import Refusal


def unknown(name: object, known: Any, what: str = "field") -> Refusal:
    """Return why an unknown name is refused, and the nearest known name."""
    text = str(name)
    folded = {each.lower(): each for each in known}
    near = get_close_matches(text.lower(), folded, n=1)
    said = "" if text.isascii() else f"; {text!a} has letters beyond a-z that look like others"
    do = f"Did you mean {folded[near[0]]}?" if near else f"Remove it; the {what}s are {', '.join(known)}"
    return Refusal(f"there is no such {what}{said}", do)
