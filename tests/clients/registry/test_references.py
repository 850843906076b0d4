from __future__ import annotations

from collections.abc import Mapping

import pytest

from frazil.clients.registry.schemas import (
    MOST_CHARACTERS,
    MOST_REFERENCES,
    Reference,
    RegisteredSchema,
    SchemaType,
    resolved,
)
from frazil.errors import UnreadableSchema


def schema(text: str, *uses: str) -> RegisteredSchema:
    """A schema that uses others: `b` is subject b, version 1; `b=c` is the name b for subject c."""
    references = tuple(Reference(use.split("=")[0], use.split("=")[-1], 1) for use in uses)
    return RegisteredSchema(id=1, type=SchemaType.AVRO, text=text, references=references)


def texts(root: RegisteredSchema, others: Mapping[str, RegisteredSchema]) -> list[tuple[str, str]]:
    return list(resolved(root, lambda reference: others.get(reference.subject)).items())


def test_a_schema_without_references_uses_nothing() -> None:
    assert texts(schema("A"), {}) == []


def test_each_comes_after_what_it_uses() -> None:
    others = {"b": schema("B", "d"), "c": schema("C", "d", "b"), "d": schema("D")}
    assert texts(schema("A", "c", "b"), others) == [("d", "D"), ("b", "B"), ("c", "C")]


def test_references_are_taken_in_their_order() -> None:
    others = {name: schema(name.upper()) for name in "bcd"}
    assert texts(schema("A", "d", "b", "c"), others) == [("d", "D"), ("b", "B"), ("c", "C")]


def test_one_schema_may_have_two_names() -> None:
    assert texts(schema("A", "b=x", "c=x"), {"x": schema("X")}) == [("b", "X"), ("c", "X")]


def test_a_name_with_two_texts_is_unreadable() -> None:
    others = {"x": schema("X"), "y": schema("Y", "n=x"), "z": schema("Z")}
    with pytest.raises(UnreadableSchema, match="'n' names two schemas"):
        texts(schema("A", "n=z", "y"), others)


@pytest.mark.parametrize("others", [{"b": schema("B", "b")}, {"b": schema("B", "c"), "c": schema("C", "other=b")}])
def test_a_circle_is_unreadable(others: Mapping[str, RegisteredSchema]) -> None:
    with pytest.raises(UnreadableSchema, match="in a circle"):
        texts(schema("A", "b"), others)


def test_a_missing_one_is_unreadable_and_named() -> None:
    with pytest.raises(UnreadableSchema, match=r"schema 1: it uses 'b' \(subject 'gone', version 1\)"):
        texts(schema("A", "b=gone"), {})


def test_a_long_chain_is_resolved() -> None:
    others = {f"s{i}": schema(f"{i}", f"s{i + 1}") for i in range(MOST_REFERENCES - 2)}
    others[f"s{MOST_REFERENCES - 2}"] = schema("end")
    assert len(texts(schema("A", "s0"), others)) == MOST_REFERENCES - 1


def test_too_many_are_unreadable() -> None:
    others = {f"s{i}": schema(f"{i}", f"s{i + 1}") for i in range(MOST_REFERENCES * 2)}
    with pytest.raises(UnreadableSchema, match="more than 1000 other schemas"):
        texts(schema("A", "s0"), others)
    wide = [f"s{i}" for i in range(MOST_REFERENCES + 1)]
    with pytest.raises(UnreadableSchema, match="more than 1000 other schemas"):
        texts(schema("A", *wide), {name: schema(name) for name in wide})


def test_too_much_text_is_unreadable() -> None:
    half = "x" * (MOST_CHARACTERS // 2 + 1)
    with pytest.raises(UnreadableSchema, match="characters"):
        texts(schema("A", "b", "c"), {"b": schema(half), "c": schema(half)})
