"""The schema file that a sample proposes: a new one, or an existing one with what the sample adds to it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from frazil.declaration.checks.problems import InvalidDeclaration
from frazil.declaration.documents.from_json import parsed
from frazil.declaration.formats import LARGEST
from frazil.errors import IncompatibleSchema, InvalidInput, UnreadableSchema
from frazil.inference.inferred_schema import record_name, sampled_schema
from frazil.inference.sample import Sample
from frazil.inference.schema_merge import Change, merged
from frazil.schemas.evolution.merge import merge
from frazil.schemas.evolution.schema_changes import changes
from frazil.schemas.json.documents import parse
from frazil.schemas.json.json_schema import row_type
from frazil.schemas.types import Struct

_TYPES = re.compile(r'\[\n\s*("[a-z]+"),\n\s*("[a-z]+")\n\s*\]')


def schema_text(schema: dict[str, Any]) -> str:
    """Return the text of the file: indented, as people edit it, and the types of a place on one line."""
    text = json.dumps(schema, indent=2, ensure_ascii=False)
    return _TYPES.sub(lambda found: f"[{found[1]}, {found[2]}]", text) + "\n"


def read_schema(content: bytes, file: str) -> dict[str, Any]:
    """Return the schema in an existing file. Raises `InvalidInput` if it is no JSON Schema of objects with properties."""
    try:
        schema = parsed(content.removeprefix(b"\xef\xbb\xbf"), file)
    except InvalidDeclaration as invalid:
        raise InvalidInput(
            invalid.problems[0].what, where=file, do="Correct the file, or name another: --out"
        ) from None
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        what = "it is no JSON Schema of an object with properties"
        raise InvalidInput(what, where=file, do="Name another file: --out")
    return schema


def checked_row(text: str, file: str) -> Struct:
    """Return the columns of a schema file. Raises `InvalidInput` if a declaration with it would be refused."""
    size = len(text.encode("utf-8", "replace"))
    if size > LARGEST:
        what = f"the schema has {size:,} bytes, and at most {LARGEST:,} are read"
        raise InvalidInput(what, where=file, do="Declare columns, or omit names that are data")
    try:
        text.encode()
        row = row_type(parse(text, {}))
    except UnicodeEncodeError:
        raise InvalidInput("a field's name has half a surrogate pair", where=file, do="Declare columns") from None
    except UnreadableSchema as error:
        raise InvalidInput(error.what, where=file, do=error.do) from None
    for misfit in merge([(0, row)]).incompatible.values():
        raise InvalidInput(
            f"{misfit.where}: {misfit.what}", where=file, do="Declare columns, without one of the fields"
        )
    return row


def table_effects(before: Struct, after: Struct) -> tuple[str, ...]:
    """Return what the new file does to a table with the columns of the old one: its changes, or that the pipeline stops."""
    tables, rows = (merge([(0, row)]).type for row in (before, after))
    try:
        return tuple(str(change) for change in changes(tables, rows))
    except IncompatibleSchema as misfit:
        where = f"{misfit.where}: " if misfit.where else ""
        return (f"a table with this column stops the pipeline: {where}{misfit.what}",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The text of the file, and how it differs from an existing one. `effects` are those on a table with the old columns."""

    text: str
    exists: bool
    changes: tuple[Change, ...] = ()
    effects: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """True if a file exists that the text would replace with another schema."""
        return self.exists and any(change.is_change for change in self.changes)

    @property
    def document(self) -> dict[str, Any]:
        """The proposal as JSON, without its text."""
        changes = [{"effect": str(each.effect), "field": each.path, "what": each.what} for each in self.changes]
        return {"exists": self.exists, "differs": self.differs, "changes": changes, "table_effects": list(self.effects)}


def proposed(sample: Sample, topic: str, existing: bytes | None, file: str) -> Proposal:
    """Return what the file would be. Raises `InvalidInput` if no field has a value, or if a declaration would refuse the file."""
    made = sampled_schema(sample.found, record_name(topic))
    if made is None:
        do = "Sample more of them: --records, or give --file"
        raise InvalidInput(f"no field of {sample.records:,} records has a value", where=f"topic {topic}", do=do)
    if existing is None:
        text = schema_text(made)
        checked_row(text, file)
        return Proposal(text=text, exists=False)
    before = read_schema(existing, file)
    after, changes = merged(before, sample.found)
    text = schema_text(after)
    rows = (checked_row(schema_text(before), file), checked_row(text, file))
    return Proposal(text=text, exists=True, changes=changes, effects=table_effects(*rows))
