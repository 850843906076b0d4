"""The schema file that a sample proposes: a new one, or an existing one with the fields that the sample adds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Change:
    """A field that is `added` to the file, or whose type there `differs` from that of the sample."""

    effect: str
    field: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The text of the file, and how it differs from an existing one."""

    text: str
    exists: bool
    changes: tuple[Change, ...] = ()

    @property
    def adds(self) -> bool:
        """True if the file is new, or gets a field."""
        return not self.exists or any(change.effect == "added" for change in self.changes)


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
    for name, schema in sampled["properties"].items():
        known, at = file["properties"].setdefault(name, schema), f"{path}{name}"
        if known is schema:
            yield Change("added", at, _shown(schema))
        elif isinstance(known, dict) and isinstance(known.get("properties"), dict) and "properties" in schema:
            yield from _merge(known, schema, f"{at}.")
        elif not _takes(known, schema):
            yield Change("differs", at, f"{_shown(known)} in the file, {_shown(schema)} in the sample; edit the file")


def _takes(file: Any, sampled: dict[str, Any]) -> bool:
    """Return whether a schema of the file takes the sampled values. One that says more than a type does."""
    old, new = _types(file), _types(sampled)
    if len(old) != 1 or (old, new) == (["number"], ["integer"]) or (old == ["string"] and "format" not in file):
        return True
    if old == new == ["array"]:
        return _takes(file.get("items"), sampled["items"])
    return old == new and (old != ["string"] or file["format"] == sampled.get("format"))


def _types(schema: Any) -> list[str]:
    """Return the types that a schema names, without null."""
    stated = schema.get("type", []) if isinstance(schema, dict) else []
    return [name for name in ([stated] if isinstance(stated, str) else stated) if name != "null"]


def _shown(schema: dict[str, Any]) -> str:
    kind = next(iter(_types(schema)), JSON_TEXT)
    return f"array of {_shown(schema.get('items', {}))}" if kind == "array" else str(schema.get("format", kind))
