"""Values that a declaration gives by a path: their class has a method `read`, which returns an instance, or a `Refusal`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

from frazil.declaration.problems import Refusal


def read(kind: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values with each path replaced by what is read there. A path stays if that is refused, see `path_refusal`."""
    reader = _reader(kind)
    if reader is None:
        return values
    found = [reader(value) if type(value) is str else value for value in values]
    return tuple(value if isinstance(new, Refusal) else new for value, new in zip(values, found, strict=True))


def path_refusal(kind: Any, value: Any) -> Refusal | None:
    """Return why the path is not read; None for what is no path."""
    reader = _reader(kind)
    refused = reader(value) if reader is not None and type(value) is str else None
    return refused if isinstance(refused, Refusal) else None


def _reader(kind: Any) -> Callable[[str], Any] | None:
    return getattr(kind, "read", None) if is_dataclass(kind) else None
