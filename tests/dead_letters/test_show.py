"""One dead letter whole: its bytes, its frame, and where decoding it goes wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import functions as F

from frazil.clients.registry.client import Registry
from frazil.clients.registry.schemas import SchemaType
from frazil.clients.secrets import Secrets
from frazil.dead_letters.show import DeadLetterView, show
from frazil.errors import SecretUnavailable
from frazil.lake.read.stored_tables import Lake
from frazil.schemas.wire_format import Frame, FrameProblem
from tests.support.dead_letter_shop import HEADERS, HOSTILE
from tests.support.fake_registry import FakeRegistry
from tests.support.keyed_topic import record
from tests.support.shop import Shop, ShopOf, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def shown(shop: Shop, partition: int, offset: int, schemas: Any = "the real one") -> DeadLetterView:
    settings = shop.environment.registry
    assert settings is not None
    asked = Registry.of(settings, Secrets({})) if schemas == "the real one" else schemas
    found = show(shop.pipeline, Lake(shop.lake, Secrets({}).read), partition=partition, offset=offset, schemas=asked)
    assert found is not None
    return found


def test_a_body_that_is_not_its_schemas_is_told_with_byte_and_field(letters: Shop) -> None:
    found = shown(letters, 0, 5)
    assert isinstance(found.value.frame, Frame)
    assert found.value.writer is not None
    assert found.value.attempt is not None
    assert f"{letters.topic}-value" in found.value.writer.subjects
    assert (found.value.attempt.what, found.value.attempt.path) == ("a length of -5", f"tags{{{HOSTILE}}}")
    assert found.value.attempt.at is not None
    assert found.value.data is not None
    assert found.value.data[found.value.body_at + found.value.attempt.at] == 0x09


def test_a_value_without_a_frame_is_told_so(letters: Shop) -> None:
    frames = [shown(letters, 1, offset).value.frame for offset in (0, 1, 3)]
    assert frames == [FrameProblem.TOO_SHORT, FrameProblem.WRONG_MAGIC, FrameProblem.NULL_VALUE]
    found = shown(letters, 1, 1)
    assert (found.value.writer, found.value.attempt, found.key.data, found.headers) == (
        None,
        None,
        b"k\x00\xff",
        tuple(HEADERS),
    )


def test_an_id_that_the_registry_lacks_is_told_so(letters: Shop) -> None:
    found = shown(letters, 0, 4)
    assert found.value.writer is not None
    assert (found.value.writer.id, found.value.writer.problem) == (2_000_000_000, "the registry has no such schema")


class Barred(FakeRegistry):
    def schema(self, schema_id: int) -> Any:
        raise SecretUnavailable("it is not set", where="secret env USER")


def test_without_a_registry_the_rest_is_shown(letters: Shop) -> None:
    down = FakeRegistry()
    down.down = True
    for schemas, problem in (
        (None, "no registry was asked"),
        (down, "fake registry: it is down"),
        (Barred(), "secret env USER: it is not set"),
    ):
        found = shown(letters, 0, 5, schemas)
        assert found.value.writer is not None
        assert (found.value.writer.problem, found.value.attempt) == (problem, None)
        assert found.value.view()


def test_what_is_no_dead_letter_is_none(letters: Shop) -> None:
    lake = Lake(letters.lake, Secrets({}).read)
    assert show(letters.pipeline, lake, partition=0, offset=0) is None
    assert show(letters.pipeline, lake, partition=9, offset=4) is None


@pytest.mark.long
def test_the_newest_of_two_dead_letters_of_a_place_is_shown(shop_of: ShopOf) -> None:
    """As after a topic was created again."""
    shop = shop_of(partitions=1)
    shop.produce([*shop.orders(1, shop.register()), b"bad"])
    shop.drain()
    dead = f"{shop.lake.catalog.name}.{shop.pipeline.table.dead_letters}"
    later = {"reason": F.lit("tombstone"), "rejected_at": F.expr("rejected_at + interval 1 day")}
    shop.spark.table(dead).withColumns(later).writeTo(dead).append()
    found = shown(shop, 0, 1)
    assert (found.letter.reason, found.earlier) == ("tombstone", 1)


def test_its_document_is_json_with_all_bytes(letters: Shop) -> None:
    document = json.loads(json.dumps(shown(letters, 1, 2).document()))
    assert bytes.fromhex(document["value"]["bytes"]) == letters.journal[1, 2]
    assert bytes.fromhex(document["key"]["bytes"]) == b"k\x00\xff"
    headers = [(h["key"], None if h["value"] is None else bytes.fromhex(h["value"])) for h in document["headers"]]
    assert headers == HEADERS
    assert document["reason"] == "undecodable"


@pytest.mark.long
def test_a_key_is_explained_as_a_value_is(shop_of: ShopOf) -> None:
    shop = shop_of(key_format="avro", partitions=1)
    written = record("Key", id="int", at="string")
    key_id = shop.registry_admin.register(f"{shop.topic}-key", json.dumps(written), SchemaType.AVRO)
    orders = shop.orders(2, shop.register())
    shop.produce(orders[:1], key=frame(key_id, b"\x02\x09"))  # id 1, then a length of -5
    shop.produce(orders[1:], key=b"\x00\x00")
    assert sum(shop.drain().rejected.values()) == 2
    key = shown(shop, 0, 0).key
    assert key.writer is not None
    assert key.attempt is not None
    assert (key.writer.subjects, key.attempt.what, key.attempt.path) == ((f"{shop.topic}-key",), "a length of -5", "at")
    assert key.attempt.at is not None
    assert key.data is not None
    assert key.data[key.body_at + key.attempt.at] == 0x09
    assert shown(shop, 0, 1).key.frame is FrameProblem.TOO_SHORT
    value = shown(shop, 0, 0).value
    assert value.attempt is not None
    assert value.attempt.succeeded


def test_the_view_begins_shortly_before_a_place_far_inside(letters: Shop) -> None:
    found = shown(letters, 0, 5)
    assert found.value.attempt is not None
    far = replace(found.value, data=bytes(5_000), attempt=replace(found.value.attempt, at=2_000))
    assert far.view()[0].startswith("000006d0")  # 2,005 - 256, at the beginning of its line
    assert far.view()[-1] == "… 2744 more bytes"
