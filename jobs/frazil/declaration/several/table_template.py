"""The identifier of a table as a template, such as `shop.{topic}`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from frazil.declaration.checks.constraints import shown
from frazil.declaration.checks.cross_checks import union_view
from frazil.declaration.checks.problems import Refusal
from frazil.declaration.table import DEAD_LETTERS_SUFFIX, as_table_name

_HOLE = re.compile(r"\{(\w+)\}")


def placeholders(template: str) -> list[str]:
    """Return the names in braces."""
    return _HOLE.findall(template)


def template_refusal(text: str, example: str) -> Refusal | None:
    """Return the refusal of a text that is not a template of tables, one for each `example`, such as `topic`."""
    like = f"Write it like 'shop.{{{example}}}'"
    namespace, dot, name = text.partition(".")
    if not dot or not re.fullmatch("[a-z0-9_]{1,255}", namespace):
        return Refusal(f"{shown(text)} does not begin with a namespace", like)
    if not _HOLE.search(name):
        view = union_view(text, (f"{namespace}.{table}" for table in ("a", "b")))
        what = f"{shown(text)} is one table for all {example}s, and a table has one writer"
        return Refusal(what, f"Write '{namespace}.{{{example}}}', and read the tables by a view: {view}")
    if name.endswith(DEAD_LETTERS_SUFFIX):
        return Refusal(f"{shown(text)} is where another table keeps its dead letters", "Choose another name")
    if not re.fullmatch("[a-z0-9_]{1,241}", _HOLE.sub("a", name)):
        return Refusal(f"{shown(text)} is not the identifier of a table", f"{like}, of a-z, 0-9 and _")
    return None


def filled(template: str, values: Mapping[str, str | None]) -> str:
    """Return the identifier with these values in place of the names in braces."""
    namespace, _, name = template.partition(".")
    name = _HOLE.sub(lambda hole: as_table_name(values[hole[1]] or ""), name)
    return f"{namespace}.{name if name[:1].isalpha() else f't_{name}'}"
