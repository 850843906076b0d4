"""The schema file that a sample proposes: a new one, or an existing one with the fields that the sample adds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from frazil.declaration.checks.problems import InvalidDeclaration
from frazil.declaration.documents.from_json import parsed
from frazil.declaration.formats import LARGEST
from frazil.errors import InvalidInput, UnreadableSchema
from frazil.inference.inferred_schema import json_schema, record_name
from frazil.inference.sample import JSON_TEXT, Sample
from frazil.schemas.json.documents import parse
from frazil.schemas.json.json_schema import row_type

_TYPES = re.compile(r'\[\n\s*("[a-z]+"),\n\s*("[a-z]+")\n\s*\]')
_DO = "Correct the file, or name another: --out"


class Effect(StrEnum):
    """The effect of the sample on a field: `ADDED` to the file, of another type than there, or `UNSEEN` in the sample."""

    ADDED = "added"
    DIFFERS = "differs"
    UNSEEN = "not seen"


@dataclass(frozen=True, slots=True)
class Change:
    """The effect on a field, and why or from what to what."""

    effect: Effect
    path: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The text of the file, and how it differs from an existing one."""

    text: str
    exists: bool
    changes: tuple[Change, ...] = ()

    def has(self, *effects: Effect) -> bool:
        """Return whether a field has one of the effects."""
        return any(change.effect in effects for change in self.changes)

    @property
    def differs(self) -> bool:
        """True if a file exists, and does not describe the sample."""
        return self.has(Effect.ADDED, Effect.DIFFERS)

    @property
    def document(self) -> dict[str, Any]:
        """The proposal as JSON, without its text."""
        changes = [{"effect": str(each.effect), "field": each.path, "what": each.what} for each in self.changes]
        return {"exists": self.exists, "differs": self.differs, "changes": changes}


def proposed(sample: Sample, topic: str, existing: bytes | None, file: str) -> Proposal:
    """Return what the file would be. Raises `InvalidInput` if no field has a value, or if a declaration would refuse the file."""
    made = json_schema(sample.found, record_name(topic))
    if not made.get("properties"):
        do = "Sample more of them: --records, or give --file"
        raise InvalidInput(f"no field of {sample.records:,} records has a value", where=f"topic {topic}", do=do)
    if existing is None:
        return Proposal(text=_text(made, file), exists=False)
    try:
        schema = parsed(existing.removeprefix(b"\xef\xbb\xbf"), file)
    except InvalidDeclaration as invalid:
        raise InvalidInput(invalid.problems[0].what, where=file, do=_DO) from None
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        raise InvalidInput("it is no JSON Schema of an object with properties", where=file, do=_DO)
    changes = tuple(_merge(schema, made, ""))
    return Proposal(text=_text(schema, file), exists=True, changes=changes)


def _text(schema: dict[str, Any], file: str) -> str:
    """Return the text of the file: indented, as people edit it, and the types of a place on one line."""
    text = _TYPES.sub(r"[\1, \2]", json.dumps(schema, indent=2, ensure_ascii=False)) + "\n"
    if len(text.encode()) > LARGEST:
        what = f"the schema has more than {LARGEST:,} bytes"
        raise InvalidInput(what, where=file, do="Declare columns, or omit names that are data")
    try:
        row_type(parse(text, {}))
    except UnreadableSchema as error:
        raise InvalidInput(error.what, where=file, do=error.do) from None
    return text


def _merge(file: dict[str, Any], sampled: dict[str, Any], path: str) -> Iterator[Change]:
    """Add the sampled properties to those of the file. Its own ones stay as they are."""
    old, new = file["properties"], sampled["properties"]
    for name, schema in new.items():
        known, at = old.get(name), f"{path}{name}"
        if name not in old:
            old[name] = schema
            yield Change(Effect.ADDED, at, _shown(schema))
        elif isinstance(known, dict) and isinstance(known.get("properties"), dict) and "properties" in schema:
            yield from _merge(known, schema, f"{at}.")
        elif isinstance(known, dict) and not _takes(known, schema):
            what = f"{_shown(known)} in the file, {_shown(schema)} in the sample; edit the file"
            yield Change(Effect.DIFFERS, at, what)
    for name in [name for name in old if name not in new]:
        yield Change(Effect.UNSEEN, f"{path}{name}", "stays in the file")


def _takes(file: dict[str, Any], sampled: dict[str, Any]) -> bool:
    """Return whether a schema of the file takes the sampled values. One that says more than a type does."""
    (old, *others), new = _types(file) or (JSON_TEXT,), next(iter(_types(sampled)), JSON_TEXT)
    is_any = bool(others) or old == JSON_TEXT or (old == "string" and "format" not in file)
    if is_any or (old, new) == ("number", "integer"):
        return True
    if old == new == "array":
        pair = (file.get("items"), sampled["items"])
        return not isinstance(pair[0], dict) or _takes(pair[0], pair[1])
    return old == new and file.get("format") in (None, sampled.get("format"))


def _types(schema: dict[str, Any]) -> tuple[str, ...]:
    """Return the types that a schema names, without null."""
    stated = schema.get("type")
    names = stated if isinstance(stated, list) else [stated]
    return tuple(name for name in names if isinstance(name, str) and name != "null")


def _shown(schema: dict[str, Any]) -> str:
    kind = next(iter(_types(schema)), JSON_TEXT)
    return f"array of {_shown(schema.get('items', {}))}" if kind == "array" else str(schema.get("format", kind))
