"""Column names, folded from source names to names that every engine and catalog accepts.

Lower case ASCII letters, digits and underscores (what Athena and Glue accept, and Avro), at most 128 of them.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Set

from frazil.declaration.checks.column_rules import is_reserved

LENGTH_LIMIT = 128

_NOT_ALLOWED = re.compile(r"[^a-z0-9_]")


def folded(source: str) -> str:
    """Return the plain column name of a source name; collisions are resolved later."""
    letters = unicodedata.normalize("NFKD", source)
    name = _NOT_ALLOWED.sub("_", "".join(c for c in letters if not unicodedata.combining(c)).lower())
    if name[:1].isdigit():
        name = "_" + name
    return name or "_"


def suffixed(source: str, digits: int = 6) -> str:
    """Return the column name, with a hash at its end, of a source name whose plain name is taken, reserved or too long.

    Leading underscores are removed, as reserved names begin with one.
    """
    digest = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:digits]
    stem = folded(source).lstrip("_")
    stem = "_" + stem if stem[:1].isdigit() else stem
    return f"{stem[: LENGTH_LIMIT - digits - 1]}_{digest}"


def claimed(source: str, taken: Set[str], *, top: bool) -> str:
    """Return the column name of a source name where `taken` are in use; `top` is the row itself, not a struct in it."""
    plain = folded(source)
    if plain not in taken and len(plain) <= LENGTH_LIMIT and not (top and is_reserved(plain)):
        return plain
    return next(name for digits in range(6, 65) if (name := suffixed(source, digits)) not in taken)


_NO_NAMES = frozenset({"pattern", "patternProperties", "const", "enum", "default", "examples"})
"""Members of a schema whose texts become no name and no comment: a pattern may name half surrogates to exclude them."""


def has_half_surrogates(schema: object) -> bool:
    """Return whether a name or comment of a schema, as JSON has it, has half a surrogate pair, which no engine takes."""
    waiting = [schema]
    while waiting:
        match waiting.pop():
            case str() as text:
                if any("\ud800" <= letter <= "\udfff" for letter in text):
                    return True
            case dict() as members:
                waiting += [*members, *(value for name, value in members.items() if name not in _NO_NAMES)]
            case list() as items:
                waiting += items
    return False
