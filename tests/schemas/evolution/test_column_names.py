from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.declaration.checks.column_rules import is_reserved
from frazil.schemas.evolution.column_names import LENGTH_LIMIT, claimed, folded, suffixed


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("orderId", "orderid"),
        ("order.id", "order_id"),
        ("order id", "order_id"),
        ("a\"b`c'd", "a_b_c_d"),
        ("tab\there", "tab_here"),
        ("Größe", "gro_e"),
        ("café", "cafe"),
        ("😀", "_"),
        ("", "_"),
        ("1st", "_1st"),
        ("select", "select"),
        ("_id", "_id"),
    ],
)
def test_a_name_is_folded_to_what_every_engine_can_say(source: str, name: str) -> None:
    assert folded(source) == name


def test_who_comes_first_keeps_the_plain_name_and_the_next_has_a_suffix_of_its_own() -> None:
    first = claimed("id", set(), top=True)
    second = claimed("Id", {first}, top=True)
    third = claimed("ID", {first, second}, top=True)
    assert first == "id"
    assert re.fullmatch(r"id_[0-9a-f]{6}", second)
    assert re.fullmatch(r"id_[0-9a-f]{6}", third)
    assert second != third


def test_a_suffix_depends_on_the_source_name_alone() -> None:
    assert claimed("Id", {"id"}, top=True) == claimed("Id", {"id", "other"}, top=False) == suffixed("Id")


def test_a_suffix_that_is_taken_grows() -> None:
    assert claimed("Id", {"id", suffixed("Id")}, top=True) == suffixed("Id", 7)


@pytest.mark.parametrize(
    "source", ["_kafka_offset", "_KAFKA_anything", "_kafka", "_ingested_at", "_decoded", "_file", "_row_id"]
)
def test_a_reserved_name_is_taken_at_the_top_only(source: str) -> None:
    assert not is_reserved(claimed(source, set(), top=True))
    assert claimed(source, set(), top=False) == source.lower()


def test_a_name_that_is_too_long_is_cut_and_told_by_its_suffix() -> None:
    one, two = (claimed("x" * 200 + end, set(), top=True) for end in "ab")
    assert one != two
    assert len(one) == LENGTH_LIMIT


@given(st.text(), st.sets(st.text()), st.booleans())
def test_any_name_can_be_claimed(source: str, taken: set[str], top: bool) -> None:
    name = claimed(source, taken, top=top)
    assert re.fullmatch(r"[a-z_][a-z0-9_]*", name)
    assert len(name) <= LENGTH_LIMIT
    assert name not in taken
    assert not (top and is_reserved(name))
