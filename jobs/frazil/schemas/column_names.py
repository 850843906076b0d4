"""Column names: what a source's field name is folded to, so that every engine and catalog can say it.

Lower case ASCII letters, digits and underscores (what Athena and Glue accept, and Avro), at most 128 of them.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Set

LENGTH_LIMIT = 128

RESERVED = frozenset(
    {"_kafka", "_ingested_at", "_decoded"}
    # Iceberg's metadata columns (https://iceberg.apache.org/spec/#reserved-field-ids)
    | {"_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"}
    | {"_change_type", "_change_ordinal", "_commit_snapshot_id"}
)
"""Names at the top of a row that are not a source's to take; whatever starts with `_kafka_` is reserved too."""

_NOT_ALLOWED = re.compile(r"[^a-z0-9_]")


def folded(source: str) -> str:
    """The plain column name of a source name, before any collision is seen."""
    letters = unicodedata.normalize("NFKD", source)
    name = _NOT_ALLOWED.sub("_", "".join(c for c in letters if not unicodedata.combining(c)).lower())
    if name[:1].isdigit():
        name = "_" + name
    return name or "_"


def suffixed(source: str, digits: int = 6) -> str:
    """The column name of a source name whose plain one is taken, reserved or too long: it ends with a hash.

    Leading underscores go, as reserved names begin with one.
    """
    digest = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:digits]
    stem = folded(source).lstrip("_")
    stem = "_" + stem if stem[:1].isdigit() else stem
    return f"{stem[: LENGTH_LIMIT - digits - 1]}_{digest}"


def claimed(source: str, taken: Set[str], *, top: bool) -> str:
    """The column name of a source name where `taken` are in use; `top` is the row itself, not a struct in it."""
    plain = folded(source)
    if plain not in taken and len(plain) <= LENGTH_LIMIT and not (top and is_reserved(plain)):
        return plain
    return next(name for digits in range(6, 65) if (name := suffixed(source, digits)) not in taken)


def is_reserved(name: str) -> bool:
    """Whether a top-level column of this name is ours or Iceberg's."""
    return name in RESERVED or name.startswith("_kafka_")
