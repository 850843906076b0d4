"""One dead letter whole: its bytes, its frame, and where decoding it goes wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.clients.registry import Registry
from frazil.clients.secrets import Secrets
from frazil.dead_letters.show import Shown, show
from frazil.lake.reader import Lake
from frazil.schemas.frames import Frame, FrameProblem
from tests.support.fake_registry import FakeRegistry
from tests.support.letters import HEADERS, HOSTILE
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def shown(shop: Shop, partition: int, offset: int, schemas: Any = "the real one") -> Shown:
    settings = shop.environment.registry
    assert settings is not None
    asked = Registry.of(settings, Secrets({})) if schemas == "the real one" else schemas
    found = show(shop.pipeline, Lake(shop.lake, Secrets({}).read), partition=partition, offset=offset, schemas=asked)
    assert found is not None
    return found


def test_a_body_that_is_not_its_schemas_is_told_with_byte_and_field(letters: Shop) -> None:
    found = shown(letters, 0, 5)
    assert isinstance(found.frame, Frame)
    assert found.writer is not None
    assert found.attempt is not None
    assert f"{letters.topic}-value" in found.writer.subjects
    assert (found.attempt.what, found.attempt.path) == ("a length of -5", f"tags{{{HOSTILE}}}")
    assert found.attempt.at is not None
    assert found.value is not None
    assert found.value[found.body_at + found.attempt.at] == 0x09


def test_a_value_without_a_frame_is_told_so(letters: Shop) -> None:
    frames = [shown(letters, 1, offset).frame for offset in (0, 1, 3)]
    assert frames == [FrameProblem.TOO_SHORT, FrameProblem.WRONG_MAGIC, FrameProblem.NULL_VALUE]
    found = shown(letters, 1, 1)
    assert (found.writer, found.attempt, found.key, found.headers) == (None, None, b"k\x00\xff", tuple(HEADERS))


def test_an_id_that_the_registry_lacks_is_told_so(letters: Shop) -> None:
    found = shown(letters, 0, 4)
    assert found.writer is not None
    assert (found.writer.id, found.writer.problem) == (2_000_000_000, "the registry has no such schema")


def test_without_a_registry_the_rest_is_shown(letters: Shop) -> None:
    down = FakeRegistry()
    down.down = True
    for schemas, problem in ((None, "no registry was asked"), (down, "fake registry: it is down")):
        found = shown(letters, 0, 5, schemas)
        assert found.writer is not None
        assert (found.writer.problem, found.attempt) == (problem, None)
        assert found.value_view()


def test_what_is_no_dead_letter_is_none(letters: Shop) -> None:
    lake = Lake(letters.lake, Secrets({}).read)
    assert show(letters.pipeline, lake, partition=0, offset=0) is None
    assert show(letters.pipeline, lake, partition=9, offset=4) is None


def test_its_document_is_json_with_all_bytes(letters: Shop) -> None:
    document = json.loads(json.dumps(shown(letters, 1, 2).document()))
    assert bytes.fromhex(document["value"]) == letters.journal[1, 2]
    assert bytes.fromhex(document["key"]) == b"k\x00\xff"
    headers = [(h["key"], None if h["value"] is None else bytes.fromhex(h["value"])) for h in document["headers"]]
    assert headers == HEADERS
    assert document["reason"] == "undecodable"


def test_the_view_begins_shortly_before_a_place_far_inside(letters: Shop) -> None:
    from dataclasses import replace

    found = shown(letters, 0, 5)
    assert found.attempt is not None
    far = replace(found, value=bytes(5_000), attempt=replace(found.attempt, at=2_000))
    assert far.value_view()[0].startswith("000006d0")  # 2,005 - 256, at the beginning of its line
    assert far.value_view()[-1] == "… 2744 more bytes"
