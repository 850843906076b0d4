"""Decode: records, schemas -> rows, each with a reason if it is rejected. One pass, in the JVM; a bad record is a value."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.declaration.options import Tombstones
from frazil.decode import wire_format
from frazil.decode.decoder import Body, Step
from frazil.decode.leaves import texts
from frazil.decode.lookup import lookup
from frazil.decode.years import all_in_years
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Struct
from frazil.schemas.wire_format import GUID_BYTES, PREFIX_BYTES, VALUE_HEADER

ROW, SCHEMA_ID, REASON, KEY = "_frazil_row", "_frazil_schema_id", "_frazil_reason", "_frazil_key"
UNKNOWN, UNKNOWN_KEY = "_frazil_unknown", "_frazil_unknown_key"
WAITING, WAITING_KEY = "_frazil_waiting", "_frazil_waiting_key"
DECODED = "_decoded"  # the last field of a row: true exactly when the record could be decoded, else null
_ONCE, _JUDGED = "_frazil_once", "_frazil_judged"
_WAITS = "waits"  # the verdict on a frame of `Decoding.waiting`


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How the bytes of one column, a topic's values or keys, are decoded.

    Framed ones: `frames` says which writer, by its number, a frame names, `waiting` which frames could land and have no decoder
    here, `refused` why a frame that is known does not land, `guids` the schema id of a frame that holds a GUID. Only `frames` are
    branches of the plan; the others may be many. A writer's body is decoded by its own of `bodies`, which all give one
    type; or all are decoded by `batched`, which takes the bodies and the writers' numbers. Others have one `unframed` body.
    `row_type` is the DDL of what all of them give; `unsure` are its columns if decoding lets through what readers of the table
    would fail on, as Avro's does: text that is not UTF-8, and years past 9999. `key` is how the keys beside the values are
    decoded, if they are.
    """

    row_type: str
    frames: Mapping[bytes, int] = field(default_factory=dict)
    guids: Mapping[bytes, int] = field(default_factory=dict)
    waiting: Collection[bytes] = ()
    refused: Mapping[bytes, Reason] = field(default_factory=dict)
    bodies: Mapping[int, Body] = field(default_factory=dict)
    batched: Callable[[Column, Column], Column] | None = None
    unframed: Step | None = None
    tombstones: Tombstones = Tombstones.DEAD_LETTER
    column: str = "value"
    header: str = VALUE_HEADER
    is_protobuf: bool = False
    unsure: Struct = Struct(())  # noqa: RUF009 # frozen
    key: Decoding | None = None

    @property
    def schema_ids(self) -> tuple[int, ...]:
        """The ids of the schemas whose records are landed."""
        return tuple(sorted({schema_id_of(number) for number in self.frames.values()}))

    @property
    def thorough(self) -> Decoding:
        """The same by thorough bodies; itself if there are none."""
        key = self.key.thorough if self.key is not None else None
        if key is self.key and not any(body.thorough for body in self.bodies.values()):
            return self
        return replace(self, bodies={n: body.thorough or body for n, body in self.bodies.items()}, key=key)


def schema_id_of(number: int) -> int:
    """The schema id of a writer's number: its lower 32 bits. Above them stands which of the schema's types the writer is."""
    return number & 0xFFFF_FFFF


def decode(records: DataFrame, decoding: Decoding) -> DataFrame:
    """`records` with their row (null where there is none) and schema id.

    The row is computed once however often it is used: without the nondeterministic column beside it, Spark would push a filter on
    the row below the projection and decode every record twice (measured: 1.7 times the CPU).
    """
    records = _framed(records, decoding)
    columns = {ROW: _row(decoding), SCHEMA_ID: _schema_id(decoding), _ONCE: F.spark_partition_id()}
    if decoding.key is not None:
        records = _framed(records, decoding.key)
        columns[KEY] = _row(decoding.key)
    return records.withColumns(columns)


def rows(decoded: DataFrame, decoding: Decoding | None = None) -> DataFrame:
    """The records that have a row; with `decoding`, whose key is well too, if it is decoded."""
    is_row = F.col(ROW)[DECODED]
    if decoding is not None:
        is_row = _is_row(decoding)
        if decoding.key is not None:
            is_row = is_row & _key_is_well(decoding.key)
    return decoded.where(is_row & (F.col(_ONCE) >= 0))


def rejected(decoded: DataFrame, decoding: Decoding) -> DataFrame:
    """The records that have no row, with the reason why; and in hex the frames that nothing final is known of, or that wait."""
    sides = [side for side in (decoding, decoding.key) if side is not None and side.unframed is None]
    verdicts = {_verdict_of(side): _judged(side) for side in sides}
    # Nondeterministic beside the verdicts, too: a filter below them would hold all that is refused several times.
    decoded = decoded.where(F.col(_ONCE) >= 0).withColumns({**verdicts, _JUDGED: F.spark_partition_id()})
    decoded = decoded.where(F.col(_JUDGED) >= 0)
    reason = F.when(~F.coalesce(_is_row(decoding), F.lit(False)), _reason(decoding))
    open_reasons = (Reason.UNKNOWN_SCHEMA, Reason.FOREIGN_SCHEMA)
    columns = {
        SCHEMA_ID: _id_in_frame(decoding),
        UNKNOWN: _unknown(decoding, *open_reasons),
        WAITING: _waiting(decoding, Reason.UNKNOWN_SCHEMA),
        UNKNOWN_KEY: F.lit(None).cast("string"),
        WAITING_KEY: F.lit(None).cast("string"),
    }
    if decoding.key is not None:
        reason = reason.when(~_key_is_well(decoding.key), _key_reason(decoding.key))
        columns[UNKNOWN_KEY] = _unknown(decoding.key, Reason.KEY_SCHEMA)
        columns[WAITING_KEY] = _waiting(decoding.key, Reason.KEY_SCHEMA)
    return decoded.withColumn(REASON, reason).where(F.col(REASON).isNotNull()).withColumns(columns)


def columns_of(target: Sequence[str]) -> list[Column]:
    """The row's fields as columns of their own."""
    return [F.col(ROW)[name].alias(name) for name in target]


# ── Frames ──────────────────────────────────────────────────────────────────────────────────────
def _framed(records: DataFrame, decoding: Decoding) -> DataFrame:
    """The records with the frame and the body of each, and what is parsed of it, each computed once."""
    if decoding.unframed is not None:
        return records
    value, name = F.col(decoding.column), decoding.column
    records = records.withColumn(f"_frazil_{name}_header", wire_format.header(F.col("headers"), decoding.header))
    framed = wire_format.frame(value, _header(decoding), protobuf=decoding.is_protobuf)
    records = records.withColumn(f"_frazil_{name}_frame", framed)
    records = records.withColumn(f"_frazil_{name}_body", wire_format.body(value, _header(decoding), _frame(decoding)))
    for body, columns in _begun(decoding).items():
        frames = {f: n for f, n in decoding.frames.items() if decoding.bodies[n] == body}
        given = [F.when(_is_one_of(_frame(decoding), frames), _body(decoding))]
        for step, column in zip(body.steps, columns, strict=False):  # the last step makes the row
            records = records.withColumn(column, step(*given))
            given.append(F.col(column))
    return records


def _begun(decoding: Decoding) -> dict[Body, list[str]]:
    """The bodies that are decoded in several steps, and the columns that hold what all but the last give."""
    several = dict.fromkeys(body for body in decoding.bodies.values() if len(body.steps) > 1)
    return {
        body: [f"_frazil_{decoding.column}_{number}_{step}" for step in range(len(body.steps) - 1)]
        for number, body in enumerate(several)
    }


def _header(decoding: Decoding) -> Column:
    return F.col(f"_frazil_{decoding.column}_header")


def _frame(decoding: Decoding) -> Column:
    return F.col(f"_frazil_{decoding.column}_frame")


def _body(decoding: Decoding) -> Column:
    return F.col(f"_frazil_{decoding.column}_body")


def _is_one_of(framed: Column, frames: Mapping[bytes, object]) -> Column:
    return F.coalesce(framed.isin([bytearray(f) for f in frames]), F.lit(False)) if frames else F.lit(False)


def _verdict_of(decoding: Decoding) -> str:
    return f"_frazil_{decoding.column}_verdict"


def _verdict(decoding: Decoding) -> Column:
    return F.col(_verdict_of(decoding))


def _judged(decoding: Decoding) -> Column:
    """What is known of a frame without a decoder: the reason why it is refused, or that it waits; else null."""
    refused = {framed: reason.value for framed, reason in decoding.refused.items()}
    return lookup(_frame(decoding), {**refused, **dict.fromkeys(decoding.waiting, _WAITS)})


def _choice(
    decoding: Decoding, made: Callable[[int], Column], otherwise: Column, *, same: Callable[[int], object]
) -> Column:
    """One `CASE` on the frame, a branch for all writers for whom `same` is equal."""
    frames: dict[object, tuple[int, list[bytearray]]] = {}
    newest_first = sorted(decoding.frames.items(), key=lambda item: (-schema_id_of(item[1]), item[1]))  # it is met most
    for framed, number in newest_first:
        frames.setdefault(same(number), (number, []))[1].append(bytearray(framed))
    column: Column | None = None
    for number, (first, *others) in frames.values():
        matches = _frame(decoding).isin([first, *others]) if others else _frame(decoding) == F.lit(first)
        column = (F if column is None else column).when(matches, made(number))
    return otherwise if column is None else column


def _row(decoding: Decoding) -> Column:
    value = F.col(decoding.column)
    # Null always; written so that Spark does not see it, which else drops the read from the plan, and fails to observe it.
    nothing = F.when(F.spark_partition_id() < 0, F.from_json(F.lit("{}"), decoding.row_type))
    if decoding.unframed is not None:
        row = decoding.unframed(value)
    elif decoding.batched is not None:
        number = _choice(
            decoding, lambda number: F.lit(number).cast("long"), F.lit(None).cast("long"), same=lambda number: number
        )
        row = decoding.batched(_body(decoding), number)
    else:
        begun = _begun(decoding)

        def made(number: int) -> Column:
            body = decoding.bodies[number]
            return body.steps[-1](_body(decoding), *map(F.col, begun.get(body, ())))

        row = _choice(decoding, made, nothing, same=lambda number: decoding.bodies[number])
    if decoding.tombstones is Tombstones.NULL_ROW:
        empty = F.from_json(F.lit('{"_decoded":true}'), decoding.row_type)
        row = F.when(value.isNull(), empty).otherwise(row)
    return row


def _schema_id(decoding: Decoding) -> Column:
    nothing = F.lit(None).cast("long")
    if decoding.unframed is not None:
        return nothing
    return _choice(decoding, lambda number: F.lit(schema_id_of(number)).cast("long"), nothing, same=schema_id_of)


def _id_in_frame(decoding: Decoding) -> Column:
    if decoding.unframed is not None:
        return F.lit(None).cast("long")
    by_guid = lookup(_frame(decoding), {f: str(schema_id) for f, schema_id in decoding.guids.items()}).cast("long")
    return F.coalesce(wire_format.schema_id(F.col(decoding.column), _header(decoding)), by_guid)


# ── Reasons ─────────────────────────────────────────────────────────────────────────────────────
def _reason(decoding: Decoding) -> Column:
    value, code = F.col(decoding.column), {reason: F.lit(reason.value) for reason in Reason}
    reason = F.when(value.isNull(), code[Reason.TOMBSTONE])
    if decoding.unframed is not None:
        return reason.otherwise(code[Reason.UNDECODABLE])
    framed, header = _frame(decoding), _header(decoding)
    magic, in_header = F.substring(F.coalesce(header, value), 1, 1), header.isNotNull()
    is_id, is_guid = magic == F.lit(bytearray(b"\x00")), magic == F.lit(bytearray(b"\x01"))
    is_short = F.length(F.coalesce(header, value)) < PREFIX_BYTES
    reason = reason.when(in_header & (F.length(header) > 0) & ~is_id & ~is_guid, code[Reason.HEADER_WRONG_MAGIC])
    reason = reason.when(~in_header & (F.length(value) > 0) & ~is_id, code[Reason.WRONG_MAGIC])
    reason = reason.when(
        in_header & (is_short | (is_guid & (F.length(header) < GUID_BYTES))), code[Reason.HEADER_TOO_SHORT]
    )
    reason = reason.when(is_short, code[Reason.TOO_SHORT])
    reason = reason.when(framed.isNull(), code[Reason.BAD_MESSAGE_INDEX])
    verdict = _verdict(decoding)
    reason = reason.when(verdict.isNotNull() & (verdict != _WAITS), verdict)
    reason = reason.when(~_is_one_of(framed, decoding.frames), code[Reason.UNKNOWN_SCHEMA])
    return reason.otherwise(code[Reason.UNDECODABLE])


def _unknown(decoding: Decoding, *reasons: Reason) -> Column:
    """The frame, in hex, of a record that is rejected for one of these reasons, and not by a verdict that is final."""
    if decoding.unframed is not None:
        return F.lit(None).cast("string")
    verdict = _verdict(decoding)
    is_open = F.col(REASON).isin([r.value for r in reasons])
    is_open &= verdict.isNull() | (verdict == Reason.FOREIGN_SCHEMA.value)
    return F.when(is_open, F.hex(_frame(decoding)))


def _waiting(decoding: Decoding, reason: Reason) -> Column:
    """The frame, in hex, of a record that is rejected for this reason, only because its frame waits."""
    if decoding.unframed is not None:
        return F.lit(None).cast("string")
    return F.when((F.col(REASON) == reason.value) & (_verdict(decoding) == _WAITS), F.hex(_frame(decoding)))


def _is_row(decoding: Decoding, column: str = ROW) -> Column:
    """Whether what was decoded is a row; null counts as no."""
    row = F.col(column)
    found = texts(row, decoding.unsure)
    checks = [row[DECODED], *([is_utf8(found)] if found else []), *all_in_years(row, decoding.unsure)]
    return reduce(Column.__and__, checks)


def is_utf8(found: Sequence[Column]) -> Column:
    """Whether all texts, null or not, are valid UTF-8."""
    # One look at all of them: behind each stands a comma, which no broken sequence of bytes can be made whole by.
    return F.is_valid_utf8(F.concat_ws(",", *found))


def _key_is_well(key: Decoding) -> Column:
    return F.col(key.column).isNull() | F.coalesce(_is_row(key, KEY), F.lit(False))


def _key_reason(key: Decoding) -> Column:
    undecodable = F.lit(Reason.KEY_UNDECODABLE.value)
    if key.unframed is not None:
        return undecodable
    has_schema = _frame(key).isNull() | _is_one_of(_frame(key), key.frames)
    return F.when(has_schema, undecodable).otherwise(F.lit(Reason.KEY_SCHEMA.value))
