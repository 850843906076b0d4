"""Protobuf bodies to rows: ptars makes Arrow columns of a complete batch, and no record is a Python object.

Two exceptions: what lands as JSON text is made value by value, and a batch with a record that ptars cannot read is halved until
that record is alone; the official library then says what it means, or that it is bad.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa
from ptars import HandlerPool, PtarsConfig
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from frazil.decode.decoder import Body, Headerless
from frazil.decode.frames.framed import Registered
from frazil.decode.frames.wire_format import begins_as_registered
from frazil.decode.protobuf.assembly import assemble
from frazil.decode.protobuf.official import canonical, has_unknown_fields, pool_of
from frazil.decode.protobuf.projection import ROOT, Reading
from frazil.decode.spark_types import spark_struct
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Struct

_T = TypeVar("_T")
_CONFIG = PtarsConfig(list_nullable=True, map_nullable=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageBody(Body):
    """A body of one message type, which `reading` describes."""

    reading: Reading = field(compare=False)


def message_body(reading: Reading, target: Struct, *, is_closed: bool) -> MessageBody:
    """Return how messages of one type are decoded; `is_closed` is that of `Reading`."""
    made = replace(reading, is_closed=is_closed)
    return MessageBody(steps=(lambda body: decode_protobuf(body, F.lit(0), [made], target),), reading=made)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainProtobuf(Headerless):
    """The decoder of messages of one declared type."""

    def framed(self) -> Iterable[tuple[SparkColumn, Reason]]:
        """Return whether a registry's client wrote the bytes: no message begins so."""
        yield begins_as_registered(self.side.bytes) | self.side.header.isNotNull(), Reason.REGISTRY_FRAME


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredProtobuf(Registered):
    """The decoder of messages by the registry's schemas, all types at once: see `decode_protobuf`."""

    has_message_index: ClassVar[bool] = True

    def row(self) -> SparkColumn:
        """Return the row of a message of the type that its frame names."""
        numbers = list(self.bodies)
        which = self.choice(
            lambda number: F.lit(numbers.index(number)), F.lit(None).cast("int"), same=lambda each: each
        )
        readings = [body.reading for body in self.bodies.values() if isinstance(body, MessageBody)]
        return decode_protobuf(self.side.body, which, readings, self.side.target)


def decode_protobuf(body: SparkColumn, which: SparkColumn, readings: Sequence[Reading], target: Struct) -> SparkColumn:
    """Return the messages `body` as a struct of the columns of `target` and `_decoded`, which is true; null if that fails.

    `which` is the index of the message's type in `readings`, all of them for `target`; null, like a null body, gives null.
    All types are read by one function, as Spark would run each of several on every row: do not put it into a `CASE`.
    """
    returned = spark_struct(target).add("_decoded", T.BooleanType())
    arrow_type = to_arrow_type(returned)
    known = tuple(readings)

    def decode(bodies: pa.Array, types: pa.Array) -> pa.Array:
        return decoded(bodies, types, known, arrow_type)

    decode.__annotations__ = {"bodies": pa.Array, "types": pa.Array, "return": pa.Array}
    read: SparkColumn = F.arrow_udf(decode, returned)(body, which)  # type: ignore[attr-defined]  # new in 4.1, not in its stubs
    return read


def decoded(bodies: pa.Array, types: pa.Array, readings: Sequence[Reading], arrow_type: pa.StructType) -> pa.Array:
    """Return one Arrow batch of bodies, each with the index of its type, as an array of structs; null for what cannot be read."""
    if bodies.type != pa.binary():
        bodies = bodies.cast(pa.binary())
    numbers = types.to_numpy(zero_copy_only=False) if not types.null_count else types.fill_null(-1).to_numpy()
    numbers = np.where(bodies.is_valid().to_numpy(zero_copy_only=False), numbers, -1)
    parts: list[pa.Array] = []
    places: list[np.ndarray] = []
    for number in np.unique(numbers):
        if not 0 <= number < len(readings):
            continue
        at = np.flatnonzero(numbers == number)
        if readings[number].is_closed:
            at = at[~_has_unknown(bodies.take(pa.array(at)), readings[number])]
            if not len(at):
                continue
        chosen = bodies if len(at) == len(bodies) else bodies.take(pa.array(at))
        make = _made(partial(_maker, readings[number], arrow_type))
        if make is None:
            parts.append(pa.nulls(len(chosen), arrow_type))
        else:
            parts += _halved(chosen, make, readings[number], pa.nulls(1, arrow_type))
        places.append(at)
    if len(parts) == 1 and len(parts[0]) == len(bodies):
        return parts[0]
    if not parts:
        return pa.nulls(len(bodies), arrow_type)
    order = np.full(len(bodies), -1)
    order[np.concatenate(places)] = np.arange(sum(map(len, places)))
    return pa.concat_arrays(parts).take(pa.array(order, mask=order < 0))


def _has_unknown(bodies: pa.Array, reading: Reading) -> np.ndarray:
    return np.array([has_unknown_fields(body, reading.schema, reading.message) for body in bodies.to_pylist()], bool)


def _halved(bodies: pa.Array, make: Callable[[pa.Array], pa.Array], reading: Reading, bad: pa.Array) -> list[pa.Array]:
    """Return the rows of the bodies, in order: in one part if all can be read."""
    is_one = len(bodies) == 1
    rows = _made(partial(make, bodies), is_one=is_one)
    if rows is not None:
        return [rows]
    if is_one:
        body = _made(partial(canonical, bodies[0].as_py(), reading.schema, reading.message))
        rows = None if body is None else _made(partial(make, pa.array([body], pa.binary())))
        return [bad if rows is None else rows]
    half = len(bodies) // 2
    return _halved(bodies[:half], make, reading, bad) + _halved(bodies[half:], make, reading, bad)


def _made(make: Callable[[], _T], *, is_one: bool = True) -> _T | None:
    """Return what `make` makes; None if the libraries refuse a body or a type. `is_one` says that it is of one body at most."""
    try:
        return make()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as problem:  # a panic of Rust code is no `Exception`
        if isinstance(problem, MemoryError) and is_one:
            raise
        return None


@lru_cache(maxsize=256)
def _handler(descriptors: bytes) -> Any:
    message = pool_of(descriptors).FindMessageTypeByName(ROOT)
    return HandlerPool([message.file], _CONFIG).get_for_message(message)


def _maker(reading: Reading, arrow_type: pa.StructType) -> Callable[[pa.Array], pa.Array]:
    handler = _handler(reading.descriptors)

    def make(bodies: pa.Array) -> pa.Array:
        batch = handler.array_to_record_batch(bodies)
        return assemble(batch, reading, arrow_type)

    return make
