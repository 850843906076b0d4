"""Rows out of the records of an envelope: the decoder of a record's type as one of its row's, with what the change does to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.declaration.envelopes import BEFORE_COLUMN
from frazil.decode.decoded_columns import CHANGE, CHANGED_AT, DECODED, OPERATION, UNAVAILABLE, WRITE_KIND
from frazil.decode.decoder import Body
from frazil.decode.spark_types import spark_type
from frazil.decode.writers.record_type import RecordType
from frazil.envelopes.envelope import Change, Envelope, Operation, Unwrapped
from frazil.errors import IncompatibleSchema, InvalidInput
from frazil.schemas.types import Struct

_NO_COLUMNS = Struct(())


def unwrapped(record_type: RecordType, envelope: Envelope) -> RecordType:
    """Return the type of the rows in records of this type.

    Raises `InvalidInput` as the envelope does, and if the record has a field of the envelope's own in another type.
    """
    if not envelope.has_changes:
        return record_type
    form = envelope.unwrapped(record_type.row)
    try:
        record_type.body(form.decoded(_NO_COLUMNS))
    except IncompatibleSchema as problem:
        raise InvalidInput(
            f"change data has this field in another type: {problem.what}",
            where=f"field {problem.where}",
            do="Remove envelope to land the events as they are, or have the producer write the envelope's own types",
        ) from None

    def body(target: Struct, *, is_closed: bool = False) -> Body:
        return _unwrapped(record_type.body(form.decoded(target), is_closed=is_closed), form, target)

    def truncates(target: Struct, *, is_closed: bool = False) -> Body:
        return _truncates(record_type.body(form.decoded(_NO_COLUMNS)), form, target)

    return replace(record_type, row=form.row, is_nullable=False, body=body, truncates=truncates)


def check_order(envelope: Envelope, names: Sequence[str]) -> None:
    """Raise `InvalidInput` if a table is to be ordered by other columns than those of the envelope's changes."""
    if not envelope.has_changes or tuple(names) == envelope.order:
        return
    if not envelope.order:
        raise InvalidInput(
            "the changes of the envelope have no order of their own: offsets order them, and a delete has no other column",
            where="write.order_by",
            do="Remove order_by",
        )
    raise InvalidInput(
        f"the changes of the envelope are ordered by {', '.join(envelope.order)}, and offsets may say otherwise",
        where="write.order_by",
        do=f"Declare order_by=({', '.join(map(repr, envelope.order))},)",
    )


@lru_cache(maxsize=256)
def _unwrapped(of_record: Body, form: Unwrapped, target: Struct) -> Body:
    """Return one body for all writers that are read and unwrapped alike."""

    # The operation is a step of its own: each column of the row asks for it.
    def operation(value: Column, *steps: Column) -> Column:
        return form.change(steps[-1], target).operation

    def row(value: Column, *steps: Column) -> Column:
        record, operation = steps[-2:]
        return _row(record, replace(form.change(record, target), operation=operation), target)

    return of_record.then(operation).then(row)


@lru_cache(maxsize=256)
def _truncates(of_record: Body, form: Unwrapped, target: Struct) -> Body:
    """Return the body that decodes the operation alone: it makes rows of truncates, and of no other change."""

    def row(value: Column, *steps: Column) -> Column:
        change = form.change(steps[-1], _NO_COLUMNS)
        return F.when(change.operation == Operation.TRUNCATE.value, _row(steps[-1], change, target))

    return of_record.then(row)


def _row(record: Column, change: Change, target: Struct) -> Column:
    """Return the row of a change. What a change that writes none has in it, a record's other parts among them, lands nowhere.

    It has the columns of the change's own key and order whatever it does; a truncate has none.
    """
    is_write, types = change.operation == Operation.WRITE.value, {f.name: f.type for f in CHANGE}
    is_truncate = F.coalesce(change.operation == Operation.TRUNCATE.value, F.lit(False))
    of_row = {**(change.order or {}), **(change.key or {})}
    about = {**change.about, **{name: F.when(~is_truncate, value) for name, value in of_row.items()}}
    if change.before is not None:
        about |= {field.name: change.before for field in target.fields if field.source == BEFORE_COLUMN}
    missing = {column.name: F.lit(None).cast(spark_type(column.type)) for column in target.fields}
    columns = [
        (about[name] if name in about else F.when(is_write, change.after.get(name, nothing))).alias(name)
        for name, nothing in missing.items()
    ]
    names = F.array_compact(F.array(*(F.when(is_it, F.lit(name)) for name, is_it in change.unavailable.items())))
    is_any = reduce(Column.__or__, change.unavailable.values(), F.lit(False))  # most records make no list
    left_out = F.when(is_write & is_any, names) if change.unavailable else None
    marks = {OPERATION: change.operation, WRITE_KIND: change.kind, CHANGED_AT: change.time, UNAVAILABLE: left_out}
    made = (
        (F.lit(None) if column is None else column).cast(spark_type(types[name])).alias(name)
        for name, column in marks.items()
    )
    return F.struct(*columns, *made, record[DECODED].alias(DECODED))
