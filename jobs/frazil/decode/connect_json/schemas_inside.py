"""The frame of a record that holds its own schema, as Kafka Connect's JsonConverter writes it: the schema's text, without blanks.

Most records have a schema that is known, and begin with its text: a comparison of bytes finds it. All others are parsed. What
the converter writes of a schema is always the same text; another writer's order or blanks make it slower, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

_BEFORE, _BETWEEN, _WITHOUT = b'{"schema":', b',"payload":', b'{"payload":'
_ALL = 2_147_483_647


def frame_inside(value: Column, known: Iterable[bytes]) -> Column:
    """Return the text of a record's schema as bytes; null without one. It is looked for among those that are `known` first."""
    parsed = F.get_json_object(value.cast("string"), "$.schema").cast("binary")
    return _begun(value, known, lambda text: F.lit(bytearray(text)), parsed)


def body_behind(value: Column, known: Iterable[bytes]) -> Column:
    """Return the record without its schema where that is one of those that are `known`, else the complete record."""

    def rest(text: bytes) -> Column:
        place = len(_BEFORE + text + _BETWEEN) + 1
        return F.concat(F.lit(bytearray(_WITHOUT)), F.substring(value, F.lit(place), F.lit(_ALL)))

    return _begun(value, known, rest, value)


def _begun(value: Column, known: Iterable[bytes], made: Callable[[bytes], Column], otherwise: Column) -> Column:
    found: Column | None = None
    for text in known:
        begins = F.startswith(value, F.lit(bytearray(_BEFORE + text + _BETWEEN)))
        found = (F if found is None else found).when(begins, made(text))
    return otherwise if found is None else found.otherwise(otherwise)
