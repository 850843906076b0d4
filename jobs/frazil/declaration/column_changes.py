"""Changes of declared columns that no schema shows: the type that a connector names decides how a value is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from frazil.declaration.column_notation import NAMED, ColumnType, columns


def other_readings(before: Iterable[str] | None, after: Iterable[str] | None) -> str:
    """Return in words which columns hold their values in another way than before, such as milliseconds; empty if none does."""
    old = {column.name: column.type for column in columns(before or ())}
    found = [
        f"{column.name}{path} was {was} and is read as {now}"
        for column in columns(after or ())
        if column.name in old
        for path, was, now in _read_otherwise(old[column.name], column.type)
    ]
    if not found:
        return ""
    means = "records that are not landed yet are read so, whatever their producer meant, and existing rows keep their values"
    return f"{'; '.join(found)}: {means}"


def _read_otherwise(old: ColumnType, new: ColumnType) -> Iterator[tuple[str, str, str]]:
    """Yield the path and both names of types, one of which a connector names; plain types that differ are seen by the table."""
    if old.name != new.name:
        if old.name in NAMED or new.name in NAMED:
            yield "", old.name, new.name
        return
    there = {(part.name or place): part.type for place, part in enumerate(old.inner)}
    for place, part in enumerate(new.inner):
        key = part.name or place
        if key in there:
            for path, was, now in _read_otherwise(there[key], part.type):
                yield f".{part.name or 'element'}{path}", was, now
