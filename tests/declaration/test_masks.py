"""Masks that a declaration refuses."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.declaration import (
    Append,
    ConnectJson,
    Encrypted,
    Hmac,
    Json,
    Pipeline,
    Redact,
    Secret,
    Shape,
    Table,
    Topic,
    Truncate,
)
from frazil.declaration.shape import shape_secrets
from tests.declaration.problems_of import problems_of

_KEYED = Hmac(Secret(env="K"))


@pytest.mark.parametrize(
    ("mask", "what"),
    [
        ({"_kafka_key": Redact()}, "several keys one"),
        ({"_kafka_headers.h": Truncate("2")}, "not rounded"),
        ({"_kafka_offset": Redact()}, "is not the path of a field"),
        ({"_kafka.key": Redact()}, "is not the path of a field"),
        ({"a": Redact(), "a.b": Redact()}, "a.b is inside a, which is masked"),
        ({"a..b": Redact()}, "is not the path of a field"),
    ],
)
def test_what_a_mask_is_not(mask: Any, what: str) -> None:
    assert any(what in problem for problem in problems_of(lambda: Shape(mask=mask)).values())


def test_a_decoded_key_and_schemas_inside_records_have_no_masks() -> None:
    def declared(key: str, value: Any) -> Pipeline:
        topic = Topic("t", value=value, key=key)
        return Pipeline(topic=topic, table=Table("s.t"), write=Append(), shape=Shape(mask={"_kafka_key": _KEYED}))

    assert declared("text", "avro")
    assert Shape(mask={"_id": _KEYED, "_unknown": Redact()})
    keeps = Json(columns=("a string",), unknown_fields="keep")
    assert "Mask _unknown" in problems_of(lambda: declared("text", keeps))["pipeline.shape.mask"]
    assert "only bytes or text have a mask" in problems_of(lambda: declared("avro", "avro"))["pipeline.shape.mask"]
    assert "a schema of its own" in problems_of(lambda: declared("text", ConnectJson()))["pipeline.shape"]


def test_dead_letters_are_encrypted_next_to_masks_only() -> None:
    kept = Encrypted(Secret(secretsmanager="frazil/dev/letters"))
    assert "no mask is declared" in problems_of(lambda: Shape(dead_letters=kept))["shape.dead_letters"]
    shape = Shape(mask={"a": _KEYED}, dead_letters=kept)
    pipeline = Pipeline(topic=Topic("t", value="avro"), table=Table("s.t"), write=Append(), shape=shape)
    assert shape_secrets([pipeline]) == ["frazil/dev/letters"]
