"""The line that `schema topics` and `schema infer` print is a declaration that is accepted, whatever the topic's name is."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import frazil
from frazil.inference.inferred_schema import columns as sampled_columns
from frazil.inference.record_file import Line
from frazil.inference.sample import Sample
from frazil.status.topic_listing import Form, declaration

NAMES = st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=249).filter(
    lambda n: n not in (".", "..")
)
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


def accepted(line: str) -> frazil.Pipeline:
    made = eval(line, vars(frazil).copy())
    assert isinstance(made, frazil.Pipeline)
    return made


@given(NAMES, st.sampled_from(["bytes", "text", "avro", "protobuf", "json_schema", "connect_json"]))
@example("1topic", "text")
@example("_internal", "text")
@example("_.1", "text")
@example("x" * 249, "text")
@example(".a", "text")
def test_any_name_of_a_topic_makes_a_valid_line(topic: str, value: str) -> None:
    assert accepted(declaration(topic, value, (Form.TEXT,))).topic.name == topic


@given(st.dictionaries(TEXTS, st.sampled_from([1, "a", 1.5, True, [1], {"": 1, "b": 2}, None]), min_size=1, max_size=6))
@example({"": 1, "a": 1})
@example({"": 1})
@example({"a`b": {"c.d": 1}})
@example({"\n": 1})
def test_any_name_of_a_property_makes_a_valid_line(record: dict[str, object]) -> None:
    columns = sampled_columns(Sample.of([Line("1", json.dumps(record))]).found)
    accepted(declaration("orders", "json", (), columns=columns))


@pytest.mark.parametrize(("topic", "table"), [("shop.orders", "shop.orders"), ("Orders-1", "sales.orders_1")])
def test_the_namespace_is_the_topics_or_that_of_the_declared_tables(topic: str, table: str) -> None:
    assert accepted(declaration(topic, "bytes", (), namespace="sales")).table.identifier == table
