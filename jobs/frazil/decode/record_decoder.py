"""Decoding of records to rows by schemas, each with a reason if it is rejected. One pass, in the JVM; a bad record is a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.declaration.options import Tombstones
from frazil.declaration.route import Rest
from frazil.decode.decoded_columns import (
    DETAIL,
    ELSEWHERE,
    KEY,
    OPERATION,
    REASON,
    ROW,
    SCHEMA_ID,
    SOURCE,
    UNKNOWN,
    UNKNOWN_KEY,
    WAITING,
    WAITING_KEY,
    as_read,
    is_truncate,
)
from frazil.decode.decoder import Decoder
from frazil.decode.keys.row_key import RowKey
from frazil.decode.shape.row_route import MOST_PARTS
from frazil.decode.shape.row_shape import RowShape
from frazil.decode.tombstones import with_row_of_nulls
from frazil.decode.values.variants import as_variants, settled
from frazil.envelopes.envelope import Operation
from frazil.schemas.json_columns import has_variants
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Struct

_ONCE, _JUDGED, _TEXTS = "_frazil_once", "_frazil_judged", "_frazil_texts"


@dataclass(frozen=True, slots=True)
class _Check:
    """A condition of a decoded record's row, never null: a reason, as text, and what it is about, for records that break it."""

    holds: Column
    reason: Column | str
    detail: Column | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDecoder:
    """The decoding of a topic's records: values, keys if they are more than bytes, and the checks of a decoded record.

    With `lands_truncates` a truncate is a row of its own, without a key. A value, not a record without one, is no row if one of
    the columns `required` is null in it. Decoders make JSON text: where `variants`, the columns of the table, has a variant, the
    row gets one in its place. With `row_key` a row has a valid key and order. With a condition in `shape` a row has `MATCH`.
    """

    values: Decoder
    keys: Decoder | None = None
    tombstones: Tombstones = Tombstones.DEAD_LETTER
    lands_truncates: bool = False
    variants: Struct = Struct(())  # noqa: RUF009 # frozen
    required: tuple[str, ...] = ()
    row_key: RowKey | None = None
    shape: RowShape = RowShape()  # noqa: RUF009 # frozen

    @property
    def has_changes(self) -> bool:
        """Return whether rows say what they do to the row of their key."""
        return self.values.side.has_changes

    @property
    def schema_ids(self) -> tuple[int, ...]:
        """The ids of the schemas whose records are landed."""
        return self.values.schema_ids

    @property
    def thorough(self) -> RecordDecoder:
        """The same by thorough bodies; itself if there are none."""
        values, keys = self.values.thorough, self.keys.thorough if self.keys is not None else None
        return self if (values, keys) == (self.values, self.keys) else replace(self, values=values, keys=keys)

    def routed(self, records: DataFrame) -> DataFrame:
        """Return records with the column `ELSEWHERE`, if a route is declared: what is known without decoding."""
        route, of_frame = self.shape.route, None
        if route is None:
            return records
        if route.is_by_frame:
            records, of_frame = self.values.framed_elsewhere(records)
        return records.withColumn(ELSEWHERE, route.is_elsewhere(self.has_no_value(), of_frame))

    def own(self, records: DataFrame) -> DataFrame:
        """Return records without those that are another table's, as far as it is known without decoding."""
        return records if self.shape.route is None else self.routed(records).where(~F.col(ELSEWHERE))

    def has_no_value(self) -> Column:
        """Return whether a record has no value for any table of its topic: null, or JSON's null without a frame."""
        value, null = F.col("value"), self.values.null
        return value.isNull() if null is None else value.isNull() | F.coalesce(null(value), F.lit(False))

    def type_names(self) -> tuple[bytes, ...]:
        """Return the types that a route knows before it decodes, as a header or a frame has them; none of another route."""
        route = self.shape.route
        if route is None:
            return ()
        return self.values.known_frames()[:MOST_PARTS] if route.is_by_frame else route.in_header()

    def with_type(self, records: DataFrame) -> tuple[DataFrame, Column]:
        """Return records with what their type is made of, and it: as a header or a frame has it."""
        route = self.shape.route
        assert route is not None
        return self.values.with_frame(records) if route.is_by_frame else (records, route.header())

    def own_parts(self, names: Sequence[bytes]) -> list[bool]:
        """Return which records may be this table's: those of no known type, those without a value, and those of each name."""
        route = self.shape.route
        assert route is not None
        if route.is_by_frame:
            elsewhere = self.values.elsewhere()
            return [True, route.route.tombstones, *(name not in elsewhere for name in names)]
        is_rest = route.route.rest is not Rest.FILTER
        return [is_rest, route.route.tombstones, *(not route.route.is_elsewhere(name.decode()) for name in names)]

    def rows(
        self,
        records: DataFrame,
        unplaced: Column | None = None,
        left: Callable[[DataFrame], DataFrame] = lambda records: records,
    ) -> DataFrame:
        """Return the records that have a row, in the column `ROW`, and the schema ids by which they were decoded.

        `unplaced` says why the table's partitions cannot hold the row, null if they can. `left` counts decoded records, with
        `ELSEWHERE`, before those of other tables are left out.
        """
        holds = [check.holds for check in self._checks(unplaced)]
        is_row = reduce(Column.__and__, holds, self.values.has_row(F.col(self._source)))
        return self._decoded(records, left).where(is_row & (F.col(_ONCE) >= 0))

    def rejected(
        self, records: DataFrame, unavailable: Column | None = None, unplaced: Column | None = None
    ) -> DataFrame:
        """Return the records that have no row, with the reason, and in hex the frames that are unknown or wait.

        `unavailable` says which of the others are changes that omit a value that is nowhere. `unplaced` is as in `rows`.
        """
        decoded = self._decoded(records).where(F.col(_ONCE) >= 0)
        verdicts = {name: verdict for side in self._sides for name, verdict in side.verdicts().items()}
        # Nondeterministic next to the verdicts, too: a filter below them would hold all that is refused several times.
        decoded = decoded.withColumns({**verdicts, _JUDGED: F.spark_partition_id()}).where(F.col(_JUDGED) >= 0)
        checks = [*self._checks(unplaced, records.sparkSession)]
        if unavailable is not None:
            checks.append(_Check(~unavailable, Reason.VALUE_UNAVAILABLE.value))
        of_value = self.values.reason()
        if self.shape.route is not None:
            of_value = self.shape.route.of_rejected(of_value)
        reason = F.when(~F.coalesce(self.values.has_row(F.col(self._source)), F.lit(False)), of_value)
        for check in checks:
            reason = reason.when(~check.holds, check.reason)
        details = [F.when(F.col(REASON) == each.reason, each.detail) for each in checks if each.detail is not None]
        nothing = F.lit(None).cast("string")
        unknown, waiting = self.values.open_frames(F.col(REASON), Reason.UNKNOWN_SCHEMA, Reason.FOREIGN_SCHEMA)
        columns = {
            DETAIL: F.coalesce(*details, nothing),
            SCHEMA_ID: self.values.id_in_frame(as_read(decoded, self.values.side.name)),
            UNKNOWN: unknown,
            WAITING: waiting,
            UNKNOWN_KEY: nothing,
            WAITING_KEY: nothing,
        }
        if self.keys is not None:
            columns[UNKNOWN_KEY], columns[WAITING_KEY] = self.keys.open_frames(F.col(REASON), Reason.KEY_SCHEMA)
        return decoded.withColumn(REASON, reason).where(F.col(REASON).isNotNull()).withColumns(columns)

    def key_of_rejected(self, row_key: RowKey) -> Column:
        """Return the key that the row of a rejected record would have: the columns of the key, null where they cannot be read."""
        has_row = F.coalesce(self.values.has_row(F.col(self._source)), F.lit(False))
        found = row_key.of_rejected(has_row, F.lit(True) if self.keys is None else _has_valid_key(self.keys))
        return F.struct(*(column.alias(name) for name, column in found.items()))

    @property
    def _sides(self) -> tuple[Decoder, ...]:
        return (self.values,) if self.keys is None else (self.values, self.keys)

    def _decoded(
        self, records: DataFrame, left: Callable[[DataFrame], DataFrame] = lambda records: records
    ) -> DataFrame:
        """Return `records` with their row (null where there is none) and schema id.

        The row is computed once however often it is used: without the nondeterministic column next to it, Spark would push a
        filter on the row below the projection and decode every record twice (measured: 1.7 times the CPU).
        """
        if self.shape.masks is not None:
            records = self.shape.masks.prepared(records)
        for side in self._sides:
            records = side.prepared(records)
        row = with_row_of_nulls(self.values.row(), self.values.side, self.tombstones)
        keys = {} if self.keys is None else {KEY: self.keys.row()}
        made = _TEXTS if has_variants(self.variants) else ROW
        columns = {
            made if self.shape.selection is None else SOURCE: row,
            SCHEMA_ID: self.values.schema_id(),
            _ONCE: F.spark_partition_id(),
            **keys,
        }
        records = records.withColumns(columns)
        if (route := self.shape.route) is not None and route.path:
            is_elsewhere = route.is_decoded_elsewhere(made if self.shape.selection is None else SOURCE)
            records = left(records.withColumns({ELSEWHERE: is_elsewhere, _ONCE: F.spark_partition_id()}))
            records = records.where(~F.col(ELSEWHERE))
        records = self.shape.selected(records, made, once=_ONCE)
        if made != ROW:
            records = records.withColumn(ROW, as_variants(F.col(_TEXTS), self.variants))
            row = settled(F.col(ROW), F.col(_TEXTS), self.variants)
            records = records.withColumns({ROW: row, _ONCE: F.spark_partition_id()})
        return self.shape.filtered(records, once=_ONCE)

    @property
    def _source(self) -> str:
        """The column with the row as it was decoded."""
        return ROW if self.shape.selection is None else SOURCE

    def _checks(self, unplaced: Column | None, spark: SparkSession | None = None) -> Iterator[_Check]:
        """Yield what must hold for a decoded value to be a row, in the order in which reasons are given; details by `spark`."""
        if self.required:
            missing = self._missing_columns()
            yield _Check(missing.isNull() | self.shape.is_filtered(), Reason.REQUIRED_NULL.value, missing)
        if self.has_changes:
            reason = self._change_reason()
            yield _Check(reason.isNull(), reason)
        key, has_no_key = self.row_key, is_truncate() if self.lands_truncates else F.lit(False)
        if key is not None and key.plain is not None:  # before its text, which a frame may spoil
            yield _Check(~key.names_schema() | has_no_key, Reason.KEY_REGISTRY_FRAME.value)
        if self.keys is not None:
            yield _Check(_has_valid_key(self.keys) | has_no_key, self.keys.key_reason())
        if key is not None:
            verdict = F.when(~has_no_key, key.verdict())
            yield _Check(verdict.isNull(), verdict)
        for holds, which, detail in self.shape.checks(spark):
            yield _Check(holds, which.value, detail)
        if unplaced is not None:
            is_placed = unplaced.isNull() if self.row_key is not None else unplaced.isNull() | self.shape.is_filtered()
            yield _Check(is_placed, Reason.PARTITION_VALUE.value, unplaced)

    def _missing_columns(self) -> Column:
        """Return the names of the required columns that a decoded value lacks, null if it lacks none."""
        row = F.col(self._source)
        names = F.array_compact(F.array(*(F.when(row[name].isNull(), F.lit(name)) for name in self.required)))
        has_value = self.values.side.bytes.isNotNull()
        return F.when(has_value & (F.size(names) > 0), F.array_join(names, ", "))

    def _change_reason(self) -> Column:
        """Return why a decoded change is no row, and deletes none, null if it does either."""
        operation = F.col(ROW)[OPERATION]
        reason = F.when(self.values.side.bytes.isNull(), None)
        reason = reason.when(operation.isNull(), Reason.OPERATION_UNKNOWN.value)
        reason = reason.when(operation == Operation.NOTHING.value, Reason.NO_CHANGE.value)
        reason = reason.when(operation == Operation.LACKS_BEFORE.value, Reason.BEFORE_MISSING.value)
        if self.lands_truncates:
            return reason
        return reason.when(operation == Operation.TRUNCATE.value, Reason.TRUNCATED.value)


def _has_valid_key(keys: Decoder) -> Column:
    return keys.side.bytes.isNull() | F.coalesce(keys.has_row(F.col(KEY)), F.lit(False))


def columns_of(target: Sequence[str], key: Mapping[str, Column] | None = None) -> list[Column]:
    """Return the row's fields as columns of their own; those of the `key` are the record's key."""
    of_key = key or {}
    return [of_key.get(name, F.col(ROW)[name]).alias(name) for name in target]
