"""Compare the declared masks, and the secrets of their HMACs, with those by which rows of a table were masked.

Rows stay as they are. With other masks equal values have two texts, and a masked key has two rows.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from frazil.clients.secrets import reference
from frazil.declaration import Hmac, Pipeline, Secret
from frazil.declaration.checks.null_values import ELEMENT
from frazil.declaration.documents.to_json import to_json
from frazil.declaration.shape import HEADERS, KEY
from frazil.errors import InvalidInput, MasksDiffer
from frazil.lake.layout import SHAPES, Layout, shapes
from frazil.lake.ledger.next_offsets import canonical
from frazil.schemas.types import Kind, Primitive, type_at

if TYPE_CHECKING:
    from frazil.decode.shape.selection import Selection
    from frazil.job.context import JobContext

MASK_SECRETS = "frazil.mask-secrets"
"""The table property with the first digits of an HMAC of a fixed text for each secret, by its reference."""
_DIGITS = 8
_MAKE_TEXT = ("hmac", "redact")


def masks_differ(pipeline: Pipeline, actual: Layout) -> bool:
    """Return whether the declared masks are others than those of the rows that landed last."""
    had, now = _both(pipeline, actual)
    return had != now


def check_masks(pipeline: Pipeline, actual: Layout) -> None:
    """Raise `MasksDiffer` if the declared masks are others than those of the rows that landed last."""
    if masks_differ(pipeline, actual):
        paths, may_accept = _differing(*_both(pipeline, actual)), keeps_columns(pipeline, actual)
        raise MasksDiffer.of(pipeline.name, pipeline.table.identifier, paths=paths, may_accept=may_accept)


def keeps_columns(pipeline: Pipeline, actual: Layout) -> bool:
    """Return whether changed masks leave the types of columns and the values of keys as they are, as far as the table says.

    Those that an operator accepted by mistake may be taken back.
    """
    had, now = _both(pipeline, actual)
    if now in [shape.get("mask") or {} for shape in shapes(actual)]:
        return True
    of_key = list(_paths_of_key(pipeline))
    for path in (path for path in {**had, **now} if had.get(path) != now.get(path)):
        parts, is_of_row = path.split("."), path != KEY and not path.startswith(HEADERS)
        inside = [part for part in parts if part not in ("element", "value")]
        is_of_key = path == KEY or any(each[: len(inside)] == inside[: len(each)] for each in of_key)
        if pipeline.write.has_key and is_of_key:
            return False
        made_text, makes_text = (side.get(path, {}).get("type") in _MAKE_TEXT for side in (had, now))
        was = type_at(actual.row, _column(pipeline, parts))
        # The former type of a masked column is not known. One that is not in the table is new, or a landing refuses it.
        may_differ = path in had or was not in (None, Primitive(Kind.STRING))
        if is_of_row and made_text is not makes_text and may_differ:
            return False
    return True


def check_masked_key(pipeline: Pipeline, made: Selection, actual: Layout) -> None:
    """Raise `MasksDiffer` if the columns of the key have other masks than those by which the table was made."""
    first, now = shapes(actual)[0].get("mask") or {}, to_json(pipeline.shape.of_rows).get("mask") or {}
    if first != now and made.masks_of(pipeline.write.key or (), first) != made.masks_of(pipeline.write.key or (), now):
        table, paths = pipeline.table.identifier, _differing(first, now)
        raise MasksDiffer.of(pipeline.name, table, paths=paths, may_accept=False)


def take_masks(pipeline: Pipeline, job: JobContext, actual: Layout) -> None:
    """Note the declared shape as that of later rows, which an operator has accepted."""
    _set(pipeline, job, SHAPES, canonical([*shapes(actual), to_json(pipeline.shape.of_rows)]))


def secret_marks(pipeline: Pipeline, read: Callable[[Secret], str]) -> dict[str, str]:
    """Return what the property `MASK_SECRETS` has."""
    secrets = {reference(mask.secret): mask.secret for mask in pipeline.shape.masks.values() if isinstance(mask, Hmac)}
    return {
        name: hmac.new(read(secret).encode(), b"frazil", hashlib.sha256).hexdigest()[:_DIGITS]
        for name, secret in sorted(secrets.items())
    }


def check_secrets(pipeline: Pipeline, job: JobContext, actual: Layout) -> None:
    """Raise `InvalidInput` if a secret has another value than the one that masked rows; note secrets that are new."""
    if not pipeline.shape.mask:
        return
    known, now = dict(json.loads(actual.properties.get(MASK_SECRETS, "{}"))), secret_marks(pipeline, job.secret)
    if changed := [name for name, mark in now.items() if known.get(name, mark) != mark]:
        raise InvalidInput(
            f"the secret {changed[0]} has another value than the one by which the rows of the table were masked",
            where=f"pipeline {pipeline.name}, shape.mask",
            do="Restore its value, or name another table and delete this one",
        )
    if now.keys() - known.keys():
        _set(pipeline, job, MASK_SECRETS, canonical({**known, **now}))


def _both(pipeline: Pipeline, actual: Layout) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the masks of the rows that landed last, and the declared ones, by their paths, as a document has them."""
    had, now = (shape.get("mask") or {} for shape in (shapes(actual)[-1], to_json(pipeline.shape.of_rows)))
    return had, now


def _differing(had: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return the paths whose masks differ, as a text."""
    return ", ".join(path for path in {**had, **now} if had.get(path) != now.get(path))


def _paths_of_key(pipeline: Pipeline) -> Iterator[list[str]]:
    """Yield what the columns of the declared key are made of, as far as the declaration says: names, without elements."""
    names = pipeline.write.key or ()
    yield from ([name] for name in names)
    for one in pipeline.shape.selected:
        if one.value is not None and one.name in names:
            yield from ([part for part in path if part != ELEMENT] for path in one.value.paths)


def _column(pipeline: Pipeline, parts: list[str]) -> str:
    """Return the path that a field of the topic has in the table: select may rename or flatten it."""
    for one in pipeline.shape.selected:
        path = list(one.value.path) if one.value is not None else []
        if path and parts[: len(path)] == path and (one.name or len(parts) > len(path)):
            return ".".join([*([one.name] if one.name else []), *parts[len(path) :]])
    return ".".join(parts)


def _set(pipeline: Pipeline, job: JobContext, name: str, value: str) -> None:
    from frazil.lake.tables import change_layout

    change_layout(job.iceberg, pipeline.table.identifier, (), {name: value}, (), False)
