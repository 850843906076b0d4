"""The file that a sample proposes: one that a declaration takes, and that an existing file loses nothing by."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from frazil.declaration import JsonSchema, Topic
from frazil.errors import InvalidInput
from frazil.inference.proposal import Proposal, proposed
from frazil.inference.record_file import Line
from frazil.inference.sample import Sample
from frazil.schema_files.declared_rows import declared_rows


def propose(*texts: str, existing: str | None = None) -> Proposal:
    sample = Sample.of(Line(f"r:{number}", text) for number, text in enumerate(texts, start=1))
    return proposed(sample, "orders", existing.encode() if existing is not None else None, "schemas/orders.json")


def test_a_declaration_takes_the_file(tmp_path: Path) -> None:
    made = propose('{"id": 1, "Ship To": {"city": "${x}"}, "at": "2026-01-31T10:00:00Z", "tags": [1], "é": true}')
    file = tmp_path / "orders.json"
    file.write_text(made.text)
    (row,) = declared_rows(Topic("orders", value=JsonSchema(schema=str(file))))
    assert str(row) == (
        "struct<id: long, Ship To: struct<city: string>, at: timestamptz, tags: list<long>, é: boolean>"
    )
    assert (made.exists, made.differs) == (False, False)
    assert '"type": ["integer", "null"]' in made.text


def test_the_same_records_change_nothing_and_others_say_what_a_table_does() -> None:
    first = propose('{"id": 1, "at": "2026-01-31"}').text
    assert not propose('{"id": 2, "at": null}', existing=first).differs
    added = propose('{"id": 2, "note": "x"}', existing=first)
    assert (added.differs, added.effects) == (True, ("column note added, string",))
    assert list(json.loads(added.text)["properties"]) == ["id", "at", "note"]
    stopping = propose('{"id": "a"}', existing=first)
    assert stopping.effects == ("a table with this column stops the pipeline: id: long cannot become string",)


@pytest.mark.parametrize(
    ("existing", "why"),
    [
        ("{", "this is not JSON"),
        ("[]", "it is no JSON Schema of an object with properties"),
        ('{"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}', "leads nowhere|no such|none"),
    ],
)
def test_a_file_that_is_no_schema_of_records_is_refused(existing: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        propose('{"a": 1}', existing=existing)


def test_a_sample_without_values_proposes_nothing() -> None:
    with pytest.raises(InvalidInput, match="no field of 2 records has a value"):
        propose('{"a": null}', "{}")


def test_a_schema_that_no_declaration_takes_is_refused() -> None:
    with pytest.raises(InvalidInput, match="half a surrogate pair"):
        propose('{"\\ud800": 1}')
    names = {f"{'n' * 100}{number}": number for number in range(9_000)}
    with pytest.raises(InvalidInput, match="at most 1,048,576 are read"):
        propose(json.dumps(names))
