from __future__ import annotations

import pytest

from frazil.clients.registry.schemas import Reference, RegisteredSchema, SchemaType, schema_from, to_answer
from frazil.errors import UnreadableSchema

SCHEMA = RegisteredSchema(id=7, type=SchemaType.PROTOBUF, text="x", references=(Reference("a.proto", "a", 1),))


def test_a_schema_survives_the_registrys_words() -> None:
    assert schema_from(to_answer(SCHEMA), 7) == SCHEMA


def test_no_type_means_avro() -> None:
    assert schema_from({"schema": '"int"'}, 1).type is SchemaType.AVRO
    assert schema_from({"schema": '"int"', "schemaType": ""}, 1).type is SchemaType.AVRO
    assert schema_from({"schema": '"int"', "schemaType": None, "references": None}, 1).references == ()


@pytest.mark.parametrize(
    "other",
    [
        RegisteredSchema(id=7, type=SchemaType.JSON, text="x", references=SCHEMA.references),
        RegisteredSchema(id=7, type=SchemaType.PROTOBUF, text="x ", references=SCHEMA.references),
        RegisteredSchema(id=7, type=SchemaType.PROTOBUF, text="x"),
        RegisteredSchema(id=7, type=SchemaType.PROTOBUF, text="x", references=(Reference("a.proto", "a", 2),)),
        RegisteredSchema(id=7, type=SchemaType.PROTOBUF, text="x", references=(Reference("b.proto", "a", 1),)),
    ],
)
def test_the_fingerprint_tells_type_text_and_references_apart(other: RegisteredSchema) -> None:
    assert other.fingerprint != SCHEMA.fingerprint


def test_the_fingerprint_does_not_depend_on_the_id() -> None:
    again = RegisteredSchema(id=8, type=SCHEMA.type, text=SCHEMA.text, references=SCHEMA.references)
    assert again.fingerprint == SCHEMA.fingerprint


def test_the_fingerprint_is_stable_between_releases() -> None:
    """It is written into ledgers: another value would make every known schema a changed one."""
    assert SCHEMA.fingerprint == "4c85501095fa3b5695a708acb3f3358c0233df22a4197ef331b19b10be2ec4ab"


def test_a_text_that_is_no_unicode_has_a_fingerprint() -> None:
    assert len(RegisteredSchema(id=1, type=SchemaType.JSON, text="\ud800").fingerprint) == 64


@pytest.mark.parametrize("kind", ["XML", "avro2"])
def test_an_unknown_type_is_unreadable(kind: str) -> None:
    with pytest.raises(UnreadableSchema, match="schema 3"):
        schema_from({"schema": "x", "schemaType": kind}, 3)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"schema": None},
        {"schema": {}},
        {"schema": "x", "schemaType": 1},
        {"schema": "x", "references": {"a": 1}},
        {"schema": "x", "references": ["a"]},
        {"schema": "x", "references": [{"name": "a", "subject": "a", "version": "1"}]},
    ],
)
def test_what_is_no_schema_is_not_taken_for_one(answer: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"schema|reference"):
        schema_from(answer, 3)
