"""The records of the bench are seeded, distinct, and match their schema."""

from __future__ import annotations

import io
import json

import fastavro
import pytest

from bench.bodies import BEGIN_MS, pool
from bench.shapes import SHAPES, Format

NUMBERS = (0, 1, 63, 64, 8191, 8192, 16_383, 16_384, 1_048_575, 1_048_576, 2_000_000_000)


@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if shape.format is Format.AVRO])
def test_a_head_and_a_tail_are_one_avro_record(name: str) -> None:
    shape = SHAPES[name]
    head, tails, keys = pool(shape, seed=1, size=8)
    schema = fastavro.parse_schema(json.loads(shape.schema))
    for number in NUMBERS:
        body = io.BytesIO(head(number) + tails[number % 8])
        found = fastavro.schemaless_reader(body, schema, None)
        if shape.changes:
            assert (found["before"], found["op"], found["source"]["table"]) == (None, "u", "orders")
            found = found["after"]
        assert (found["id"], found["at"].timestamp()) == (number, (BEGIN_MS + number) / 1000)
        assert body.read() == b""
    assert len(keys) == len(tails)


@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if shape.format is Format.JSON])
def test_a_head_and_a_tail_are_one_json_document(name: str) -> None:
    head, tails, _ = pool(SHAPES[name], seed=1, size=8)
    found = [json.loads(head(number) + tails[number % 8]) for number in NUMBERS]
    assert [document["id"] for document in found] == list(NUMBERS)
    assert found[0]["at"] == "2026-11-01T12:00:00.000Z"
    assert all(list(document)[:2] == ["id", "at"] for document in found)


@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if shape.format is not Format.PROTOBUF])
def test_a_seed_makes_the_same_records_again(name: str) -> None:
    assert pool(SHAPES[name], seed=3, size=20)[1:] == pool(SHAPES[name], seed=3, size=20)[1:]
    assert pool(SHAPES[name], seed=3, size=20)[1] != pool(SHAPES[name], seed=4, size=20)[1]


def test_a_few_users_have_most_of_the_orders() -> None:
    users = [json.loads(b"{" + tail)["user"]["id"] for tail in pool(SHAPES["nested_json"], seed=1, size=2000)[1]]
    assert 500 < len(set(users)) < 1900  # many users, and some who come again and again
