"""Which of Iceberg's table properties a table may set, and who sets the others.

Names are those of https://iceberg.apache.org/docs/latest/configuration/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from frazil.declaration.constraints import shown
from frazil.declaration.problems import Problem, Refusal

_FIELD = "the declaration has a field for it"
_OWNED = (
    # pattern of the name, why it is refused, what to do
    (r"format-version", _FIELD, "Use Table.format_version"),
    (r"write\.target-file-size-bytes", _FIELD, "Use Table.target_file_size_bytes"),
    (r"history\.expire\..*", _FIELD, "Use Table.keep_snapshots and Table.keep_days"),
    (r"sort-order|write\.sort-order", _FIELD, "Use Table.sort_by"),
    (r"frazil\..*", "Frazil keeps its own facts there", "Remove it"),
    (r"commit\..*", "commits are Frazil's: rows and offsets become one of them", "Remove it"),
    (
        r"write\.metadata\.metrics\.column\.(_kafka.*|_ingested_at)",
        "verify reads the metrics of Frazil's columns",
        "Remove it; the metrics of your own columns are yours",
    ),
    (r"write\.metadata\.(?!metrics\.).*", "metadata files are Frazil's, and so is their clean-up", "Remove it"),
    (
        r"write\.(data|folder-storage|object-storage)\.path|write\.location-provider\.impl|location",
        "files live under the warehouse of the environment, where jobs may write and clean up",
        "Remove it",
    ),
    (
        r"write\.distribution-mode|write\.[a-z]+\.distribution-mode",
        "how rows are dealt to tasks is Frazil's",
        "Remove it",
    ),
    (
        r"write\.wap\..*|write\.spark\.accept-any-schema",
        "Frazil publishes itself, and changes schemas itself",
        "Remove it",
    ),
    (r"schema\.name-mapping\..*|identifier-fields", "columns are Frazil's", "Remove it"),
    (r"gc\.enabled|compatibility\..*", "upkeep and commits rest on it", "Remove it"),
    (r"encryption\..*", "encrypted tables are not supported", "Encrypt the bucket instead"),
    (
        r"uuid|snapshot-count|(current-|default-).*|provider|owner",
        "Iceberg and the catalog keep their own facts under this name",
        "Remove it",
    ),
)


def property_problems(properties: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the problems of a table's properties; values are not shown."""
    for name, value in properties.items():
        refusal = _refusal(name, value)
        if refusal:
            yield Problem(f"properties[{shown(name)}]", *refusal)


def _refusal(name: str, value: str) -> Refusal | None:
    if not re.fullmatch(r"[A-Za-z0-9_][^\s=]*", name):
        return Refusal("this is not a property's name", "Write one like write.parquet.row-group-size-bytes")
    if re.fullmatch(r"write(\.delete)?\.format\.default", name):
        return None if value == "parquet" else Refusal("Frazil writes Parquet only", "Remove it")
    return _owned(name)


def undeclarable(name: str) -> str | None:
    """Return why no declaration may set a property; None if one may."""
    refusal = _owned(name)
    return refusal.what if refusal is not None else None


def _owned(name: str) -> Refusal | None:
    return next((Refusal(what, do) for pattern, what, do in _OWNED if re.fullmatch(pattern, name)), None)
