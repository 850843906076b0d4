"""The schema file that a sample proposes: a new one, or an existing one with the fields that the sample adds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from frazil.declaration.checks.problems import InvalidDeclaration
from frazil.declaration.documents.from_json import parsed
from frazil.errors import InvalidInput, UnreadableSchema
from frazil.inference.inferred_schema import json_schema, record_name
from frazil.inference.sample import Sample
from frazil.schemas.json.documents import parse
from frazil.schemas.json.json_schema import row_type

_TYPES = re.compile(r'\[\n\s*("[a-z]+"),\n\s*("[a-z]+")\n\s*\]')
_DO = "Correct the file, or name another: --out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The text of the file, and the fields that it adds to an existing one, with their types."""

    text: str
    exists: bool
    added: Mapping[str, str] = field(default_factory=dict)


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
    types = {place.path: place.type for place in sample.fields}
    added = {path: types[path] for path in _add(schema["properties"], made["properties"], "")}
    return Proposal(text=_text(schema, file), exists=True, added=added)


def _add(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[str]:
    """Add new properties to those of the file, which stay as they are."""
    for name, schema in new.items():
        known = old.setdefault(name, schema)
        inside = known.get("properties") if isinstance(known, dict) else None
        if known is schema:
            yield f"{path}{name}"
        elif isinstance(inside, dict):
            yield from _add(inside, schema.get("properties", {}), f"{path}{name}.")


def _text(schema: dict[str, Any], file: str) -> str:
    """Return the text of the file: indented, as people edit it, and the types of a place on one line."""
    text = _TYPES.sub(r"[\1, \2]", json.dumps(schema, indent=2, ensure_ascii=False)) + "\n"
    try:
        row_type(parse(text, {}))
    except UnreadableSchema as error:
        raise InvalidInput(error.what, where=file, do=error.do) from None
    return text
