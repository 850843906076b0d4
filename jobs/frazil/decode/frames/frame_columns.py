"""Columns of the frame: the bytes before a record's body that name its writer, and the body behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.decode.avro.plain_avro import begins_as_single_object
from frazil.decode.connect_json.schemas_inside import body_behind, frame_inside
from frazil.decode.decoder import Decoder
from frazil.decode.decoding import Decoding, schema_id_of
from frazil.decode.frames import wire_format
from frazil.decode.frames.lookup import lookup
from frazil.schemas.avro.schema_fingerprint import HEAD_BYTES

_ALL = 2_147_483_647


def with_frames(records: DataFrame, decoding: Decoding) -> DataFrame:
    """Return the records with the frame and the body of each, and what is parsed of it, each computed once."""
    if decoding.unframed is not None:
        if decoding.rejects_headers:
            in_header, value = wire_format.header(F.col("headers"), decoding.header), F.col(decoding.column)
            records = records.withColumn(f"_frazil_{decoding.column}_header", in_header)
            records = records.withColumn(f"_frazil_{decoding.column}_body", F.when(header_of(decoding).isNull(), value))
        given = [bytes_of(decoding)]
        for step, column in zip(decoding.unframed.steps, unframed_columns(decoding), strict=False):
            records = records.withColumn(column, step(*given))
            given.append(F.col(column))
        return records
    value, name = F.col(decoding.column), decoding.column
    if decoding.is_single_object:
        records = records.withColumn(
            f"_frazil_{name}_frame", F.when(begins_as_single_object(value), F.substring(value, 1, HEAD_BYTES))
        )
        body = F.substring(value, F.lit(HEAD_BYTES + 1), F.lit(_ALL))
        records = records.withColumn(f"_frazil_{name}_body", body)
        return _with_steps(records, decoding)
    if decoding.has_schemas_inside:
        records = records.withColumn(f"_frazil_{name}_frame", frame_inside(value, decoding.frames))
        return _with_steps(records.withColumn(f"_frazil_{name}_body", body_behind(value, decoding.frames)), decoding)
    records = records.withColumn(f"_frazil_{name}_header", wire_format.header(F.col("headers"), decoding.header))
    framed = wire_format.frame(value, header_of(decoding), protobuf=decoding.is_protobuf)
    records = records.withColumn(f"_frazil_{name}_frame", framed)
    records = records.withColumn(
        f"_frazil_{name}_body", wire_format.body(value, header_of(decoding), frame_of(decoding))
    )
    return _with_steps(records, decoding)


def _with_steps(records: DataFrame, decoding: Decoding) -> DataFrame:
    for body, columns in step_columns(decoding).items():
        frames = {f: n for f, n in decoding.frames.items() if decoding.bodies[n] == body}
        given = [F.when(is_one_of(frame_of(decoding), frames), body_of(decoding))]
        for step, column in zip(body.steps, columns, strict=False):  # the last step makes the row
            records = records.withColumn(column, step(*given))
            given.append(F.col(column))
    return records


def step_columns(decoding: Decoding) -> dict[Decoder, list[str]]:
    """Return the bodies that are decoded in several steps, and the columns that hold what all but the last give."""
    several = dict.fromkeys(body for body in decoding.bodies.values() if len(body.steps) > 1)
    return {
        body: [f"_frazil_{decoding.column}_{number}_{step}" for step in range(len(body.steps) - 1)]
        for number, body in enumerate(several)
    }


def unframed_columns(decoding: Decoding) -> list[str]:
    """Return the columns that hold what all but the last step of an unframed body give."""
    assert decoding.unframed is not None
    return [f"_frazil_{decoding.column}_{step}" for step in range(len(decoding.unframed.steps) - 1)]


def header_of(decoding: Decoding) -> Column:
    """Return the column of the header that names the writer; null without one."""
    return F.col(f"_frazil_{decoding.column}_header")


def frame_of(decoding: Decoding) -> Column:
    """Return the column of the frame; null if there is no valid one."""
    return F.col(f"_frazil_{decoding.column}_frame")


def body_of(decoding: Decoding) -> Column:
    """Return the column of the bytes behind the frame."""
    return F.col(f"_frazil_{decoding.column}_body")


def bytes_of(decoding: Decoding) -> Column:
    """Return the column of the bytes that an unframed body is decoded of."""
    return body_of(decoding) if decoding.rejects_headers else F.col(decoding.column)


def is_one_of(framed: Column, frames: Mapping[bytes, object]) -> Column:
    """Return whether a frame is one of these; null counts as no."""
    return F.coalesce(framed.isin([bytearray(f) for f in frames]), F.lit(False)) if frames else F.lit(False)


def choice(
    decoding: Decoding, made: Callable[[int], Column], otherwise: Column, *, same: Callable[[int], object]
) -> Column:
    """Return one `CASE` on the frame, with a branch for all writers for whom `same` is equal."""
    frames: dict[object, tuple[int, list[bytearray]]] = {}
    newest_first = sorted(decoding.frames.items(), key=lambda item: (-schema_id_of(item[1]), item[1]))  # it is met most
    for framed, number in newest_first:
        frames.setdefault(same(number), (number, []))[1].append(bytearray(framed))
    column: Column | None = None
    for number, (first, *others) in frames.values():
        matches = frame_of(decoding).isin([first, *others]) if others else frame_of(decoding) == F.lit(first)
        column = (F if column is None else column).when(matches, made(number))
    return otherwise if column is None else column


def id_in_frame(decoding: Decoding, value: Column) -> Column:
    """Return the schema id that the frame of a record with these bytes names, whether known or not."""
    if not decoding.has_ids:
        return F.lit(None).cast("long")
    by_guid = lookup(frame_of(decoding), {f: str(schema_id) for f, schema_id in decoding.guids.items()}).cast("long")
    return F.coalesce(wire_format.schema_id(value, header_of(decoding)), by_guid)
