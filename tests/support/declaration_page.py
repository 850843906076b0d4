"""Write docs/reference/declaration.md, every field of a declaration, from the dataclasses: `python -m tests.support.declaration_page`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

from frazil import declaration
from frazil.declaration.checks.allowed_options import _OWNED, CONSUMER_OPTIONS
from frazil.declaration.checks.constraints import LONG_MAX, NOT_EMPTY
from frazil.declaration.checks.validation import Hint, hints, taken_apart

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "declaration.md"
PARTS = (
    *("pipeline", "topic", "formats", "table", "write_modes", "envelopes", "shape", "route"),
    *("several.routed_topic", "several.topic_pattern", "start", "engines", "options"),
    *("environment", "secret", "catalogs"),
)
HEAD = """<!-- Written from the dataclasses in jobs/frazil/declaration by `python -m tests.support.declaration_page`; do not edit. -->
# Reference: every field of a declaration

[Declarations](../declaration.md) explains the fields by example. Arguments are named, except a *first argument*. *Values*
says what a field takes beyond its type. A choice without fields may be its text, such as `start="latest"`.
"""
WORDS = {str: "text", int: "integer", bool: "`True` or `False`", datetime: "`datetime`"}


def page() -> str:
    """Return the complete page."""
    return HEAD + "".join(f"\n## {cls.__name__}\n\n{_section(cls)}\n" for part in PARTS for cls in classes(part))


def classes(part: str) -> list[Any]:
    """Return the declared classes and the closed sets that a module of `frazil.declaration` defines."""
    module = import_module(f"frazil.declaration.{part}")
    own = [each for name, each in vars(module).items() if isinstance(each, type) and each.__name__ == name]
    own = [each for each in own if each.__module__ == module.__name__]
    return [each for each in own if is_dataclass(each) or issubclass(each, StrEnum)]


def _section(cls: Any) -> str:
    parts = [" ".join(part.split()) for part in (inspect.getdoc(cls) or "").split("\n\n")]
    if issubclass(cls, StrEnum):
        return "\n\n".join(
            [*parts, f"Members: {', '.join(f'`{each.name}` (`{each}`)' for each in cls)}.", *_lists(cls)]
        )
    if kind := getattr(cls, "kind", None):
        parts.append(f'In a document: `"type": "{kind}"`.')
    if fields(cls):
        rows = (f"| `{each.name}` | {' | '.join(_cells(each, hints(cls)[each.name]))} |" for each in fields(cls))
        parts.append("\n".join(["| field | type | default | values | meaning |", "|---|---|---|---|---|", *rows]))
    return "\n\n".join([*parts, *_lists(cls)])


def _cells(of: Field[Any], hint: Any) -> Iterator[str]:
    apart = taken_apart(hint)
    yield f"{'' if of.kw_only else 'first argument: '}{_type(apart)}{' or `None`' if apart.is_optional else ''}"
    yield "required" if of.default is MISSING else "see meaning" if of.default == "" else _value(of.default)
    yield "; ".join(_limits(apart))
    yield apart.meaning


def _type(apart: Hint) -> str:
    inner = [_type(taken_apart(part)) for part in get_args(apart.type) if part is not ...]
    if apart.origin is tuple:
        return f"tuple of {inner[0]}{', or one alone' if apart.may_be_alone else ''}"
    if inner:
        return f"mapping of {inner[0]} to {inner[1]}"
    return " or ".join(WORDS.get(kind) or f"[{kind.__name__}](#{kind.__name__.lower()})" for kind in apart.types)


def _value(default: Any) -> str:
    if hasattr(default, "__dataclass_fields__"):
        return f"`{type(default).__name__}()`"
    return f"`{default:_}`" if type(default) is int and default > 9999 else f"`{str(default) or repr(default)}`"


def _limits(apart: Hint) -> Iterator[str]:
    """Yield the constraints: bounds, choices, or the remedy for a value that is refused."""
    for rule in apart.rules:
        if "minimum" in rule.keywords:
            lowest, highest = rule.keywords["minimum"], rule.keywords["maximum"]
            yield f"at least {lowest}" if highest == LONG_MAX else f"{lowest:_} to {highest:_}"
        elif "enum" in rule.keywords or rule is NOT_EMPTY:
            yield " or ".join(map(str, rule.keywords.get("enum", ["not empty"])))
        elif refusal := rule.refusal("" if rule.keywords else "x(y)"):
            yield refusal.do
    for part in get_args(apart.type):
        yield from _limits(taken_apart(part))


def _lists(cls: Any) -> Iterator[str]:
    """Yield what belongs to a class and is in no field of it."""
    if cls is declaration.Reading:
        yield f"The options, with values as text: {', '.join(f'`{name}`' for name in sorted(CONSUMER_OPTIONS))}."
    elif cls is declaration.MetadataColumns:
        yield f"The columns of `flat`: {', '.join(f'`{name}`' for name in declaration.FLAT_COLUMNS)}."
        yield f"The fields of `_kafka` in `struct`: {', '.join(f'`{name}`' for name in declaration.STRUCT_FIELDS)}."
    elif cls is declaration.Table:
        names = [name.replace(r"\..*", ".*").replace("\\", "").replace("|", r"\|") for name, _, _ in _OWNED]
        rows = (f"| `{name}` | {why} | {do} |" for name, (_, why, do) in zip(names, _OWNED, strict=True))
        refused = "\n".join(["| names | why | remedy |", "|---|---|---|", *rows])
        yield f"Names in `properties` that are refused. `.*` is any text:\n\n{refused}"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), "utf-8")
