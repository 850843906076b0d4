"""The schema file that a sample proposes: a new one, or an existing one with what the sample adds to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from frazil.errors import InvalidInput
from frazil.inference.inferred_schema import record_name
from frazil.inference.sample import Sample
from frazil.inference.sampled_schema import sampled_schema
from frazil.inference.schema_merge import Change, merged
from frazil.inference.schema_text import checked_row, read_schema, schema_text, table_effects


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The text of the file, and how it differs from an existing one. `effects` are those on a table with the old columns."""

    text: str
    exists: bool
    changes: tuple[Change, ...] = ()
    effects: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether a file exists that the text would replace with another schema."""
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
