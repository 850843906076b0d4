"""Keys in JSON that have members besides their columns: two keys that differ there alone would be one row."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.declaration.options import ValueFormat
from frazil.decode.decoder import Decoder
from frazil.decode.writers.record_type import RecordType
from frazil.schemas.types import Struct

_PAYLOAD = "payload"
_IN_JSON = frozenset({ValueFormat.JSON, ValueFormat.CONNECT_JSON, ValueFormat.JSON_SCHEMA})


def decoder_of(writer: RecordType, target: Struct, of: ValueFormat, *, is_closed: bool) -> Decoder:
    """Return the decoder of a writer's records; with `is_closed` none of an object in JSON that has more members than `target`."""
    assert writer.decoder is not None
    made = writer.decoder(target)
    if not is_closed or writer.is_single_value or of not in _IN_JSON:
        return made
    return closed(made, tuple(f.source for f in target.fields), in_payload=of is ValueFormat.CONNECT_JSON)


@lru_cache(maxsize=256)
def closed(of: Decoder, members: tuple[str, ...], *, in_payload: bool = False) -> Decoder:
    """Return the decoder of objects without other `members`, and without one of them twice; others have no row."""

    def row(body: Column, *steps: Column) -> Column:
        text = body.cast("string")
        checks = _has_each_once(text)
        if in_payload:
            text = F.get_json_object(text, f"$.{_PAYLOAD}")
            checks &= _has_each_once(text)
        others = F.array_except(F.json_object_keys(text), F.array(*map(F.lit, members)))
        return F.when(checks & (F.size(others) == 0), steps[-1])

    thorough = closed(of.thorough, members, in_payload=in_payload) if of.thorough is not None else None
    return replace(of, steps=(*of.steps, row), thorough=thorough)


def _has_each_once(text: Column) -> Column:
    names = F.json_object_keys(text)
    return F.size(F.array_distinct(names)) == F.size(names)
