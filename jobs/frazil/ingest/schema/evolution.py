"""The table and the decoders of a pipeline, as its known schemas need them."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from frazil.clients.kafka import Span
from frazil.clients.kafka_records import Record
from frazil.declaration import Pipeline
from frazil.declaration.checks.column_rules import is_reserved
from frazil.declaration.formats import Bytes
from frazil.declaration.options import SchemaEvolution
from frazil.declaration.write_modes import tombstones
from frazil.decode.changes_in_rows import check_order
from frazil.decode.keys.key_column import KeyLanding, Keys, check_bytes, key_problem
from frazil.decode.keys.row_key import KEY_COLUMN, RowKey, plain_key, row_key, value_key
from frazil.decode.keys.row_order import TIMESTAMP, row_order
from frazil.decode.record_decoder import RecordDecoder
from frazil.decode.shape.row_masks import masks_of
from frazil.decode.shape.row_shape import row_shape
from frazil.decode.writers.seen_frames import MOST, SeenFrames, UnknownSchemas
from frazil.decode.writers.writer_schemas import TooMany, WriterSchemas
from frazil.errors import IncompatibleSchema, InvalidInput, ServiceUnavailable, WriteModeDiffers
from frazil.ingest.batch.record_faults import Unfit, fault, is_key_reason
from frazil.ingest.batch.refused_records import Refused
from frazil.ingest.batch.staging import Staging
from frazil.ingest.reporting.events import Event, Reporter
from frazil.ingest.schema.first_schemas import FirstSchemas
from frazil.ingest.schema.framed_keys import FramedKeys
from frazil.ingest.schema.key_checks import check_key_fields, check_types, key_of_table, too_wide
from frazil.ingest.schema.schema_reports import SchemaReports
from frazil.ingest.schema.source_rows import SourceRows
from frazil.ingest.setup.existing_table import named_now
from frazil.ingest.setup.waiting import position, waiting
from frazil.job.context import JobContext
from frazil.lake import tables
from frazil.lake.evolve import evolve
from frazil.lake.java_classes import Java
from frazil.lake.ledger.entries import has_records
from frazil.lake.stage import PartitionLimits
from frazil.schemas.evolution.merge import incompatible, merge, same_field
from frazil.schemas.evolution.schema_changes import Change, renames
from frazil.schemas.evolution.table_mapping import Landing, landing, named_as, names_since
from frazil.schemas.json_columns import with_texts
from frazil.schemas.key_fields import KEY_VERSION, key_version
from frazil.schemas.reasons import MESSAGES, Reason
from frazil.schemas.types import Field, Kind, Primitive, Struct, Type
from frazil.write.mode import RowLayout, own_changes, without_own
from frazil.write.mode_of import mode_of


class Evolution:
    """The writers' schemas of one pipeline's values and keys, and the table that follows them as far as is declared."""

    def __init__(self, pipeline: Pipeline, job: JobContext, writers: WriterSchemas, report: Reporter) -> None:
        check_order(writers.envelope, pipeline.write.order_columns)
        self._pipeline, self._job, self._writers = pipeline, job, writers
        layout = pipeline.table.metadata_columns
        self._first = FirstSchemas(pipeline, job)
        fields, table_rows = lambda: self._key_fields, lambda: self._rows_in(self._existing)
        self._source = SourceRows(pipeline, job, writers, fields, table_rows)
        self._is_keyed, self._names, self._mode = pipeline.write.has_key, pipeline.write.key, mode_of(pipeline)
        table = pipeline.table.identifier
        self._mode.begin(job, lambda event, facts: report(Event(f"key_index_{event}"), table=table, **facts))
        self._keys: Keys | None = None  # bytes land as they are
        if not isinstance(pipeline.topic.key, Bytes):
            of_rows, unfit = self._is_keyed, self._unfit_key
            self._keys = Keys(
                pipeline.topic, writers.of_topic, layout, writers.envelope, name_rows=of_rows, unfit=unfit
            )
        self.may_lack_keys = False
        self._there: Struct | None = None
        self._misfits: tuple[object, tuple[int, ...], Mapping[int, IncompatibleSchema]] = None, (), {}
        self._table: Java | None = None
        self._reports = SchemaReports(report)
        self._unfit: tuple[Unfit, Unfit] = {}, {}
        self.framed_keys = FramedKeys(pipeline, writers.of_topic, report, job.clock)

    @property
    def _sides(self) -> tuple[WriterSchemas, ...]:
        """The schemas of the values, and those of the keys if they are decoded."""
        return (self._writers,) if self._keys is None else (self._writers, self._keys.writers)

    @property
    def is_known(self) -> bool:
        """True if enough is known to make a table: a schema of the values, and of the keys if they are decoded."""
        return self._knows_values and (self._keys is None or bool(self._keys.writers.versions))

    @property
    def _knows_values(self) -> bool:
        return bool(self._writers.versions) or self._writers.may_begin_without or self._source.needs_none

    def waiting(self, spans: Mapping[int, Span]) -> dict[str, Any]:
        """Return the facts of an `idle` event while not enough is known, from the table's offsets or the declared start."""
        writers = self._keys.writers if self._keys is not None and self._knows_values else self._writers
        problem, start = writers.problem, position(self._pipeline, self._job, spans)
        now, lacks_key = self._job.clock(), self._knows_values
        return waiting(self._pipeline, self._job.kafka, start, spans, now=now, lacks_key=lacks_key, problem=problem)

    @property
    def types(self) -> tuple[Struct, Type | None]:
        """The row that holds all known versions, and the type of its key; None if keys are not decoded."""
        return self._with_columns(self._named(merge(self._versions).type)), self._keys.type if self._keys else None

    def row_key(self) -> tuple[str, ...]:
        """Return the columns of a new table's key; none of an append table. Raises as `FramedKeys.check_subject` does."""
        if not self._is_keyed:
            return ()
        if self._names is not None:
            check_types(self._pipeline, merge(self._versions).incompatible)
            return self._key_of(self.types[0]).names
        self.framed_keys.check_subject()
        if self._key_fields is not None:
            check_key_fields(self._pipeline.name, self._key_fields, self._of_values, merge(self._versions).incompatible)
        row, key = self.types
        return self._key_of(row, key or Primitive(Kind.BINARY)).names

    def made_of(self) -> tuple[tuple[str, ...], tuple[Field, ...]]:
        """Return what a new table has next to its rows: `row_key`, and the columns of its write mode.

        Raises as `row_key` does.
        """
        key, row = self.row_key(), self.types[0]
        self._source.check(row, self._read_key)
        return key, self._mode.columns(row)

    def refresh(self) -> None:
        """Ask for new schemas, or look for the first ones in the records."""
        for writers in self._sides:
            writers.refresh()
        self._first.learn(self._writers, self._keys)

    def learn(self, values: SeenFrames, keys: SeenFrames) -> None:
        """Find out about frames that records of a batch have and no decoder.

        Raises `UnknownSchemas` if the batch is to be staged again, as some have a decoder now or are more than can be asked for;
        and `RegistryUnavailable`.
        """
        try:
            found = self._writers.learn(values)
            if (self._keys is not None and self._keys.writers.learn(keys)) or found:
                raise UnknownSchemas(values, keys)
        except TooMany:
            raise UnknownSchemas(values, keys, most_rows=MOST) from None

    def explain(self, one: Refused, record: Record | None = None) -> str:
        """Return what is wrong with a rejected record, as far as Kafka, unless it is given, and the registry say it."""
        if one.detail is not None:
            is_declared = one.reason in (Reason.TRANSFORM_FAILED, Reason.EVENT_TIME)
            about = one.detail if is_declared else one.detail.partition(": ")[0]  # then a value, which no log has
            return f"{MESSAGES[Reason(one.reason)]}: {about}"
        if record is None:
            topic, place = self._pipeline.topic.name, {one.partition: one.offset}
            with contextlib.suppress(ServiceUnavailable):
                record = self._job.kafka.records(topic, place, self._pipeline.isolation).get(one.partition)
        is_key, of_keys = is_key_reason(one.reason), self._keys.writers if self._keys is not None else None
        return fault(self._pipeline, record, one.reason, of_keys if is_key else self._writers, self._unfit[is_key])

    def recall(self, schema_ids: Collection[int]) -> None:
        """Decode the versions of the values that the last batch was decoded with, so that the next one is staged once."""
        self._writers.recall(schema_ids)

    def forget(self) -> bool:
        """Forget which versions were seen, if decoding all of them costs something; return whether it was so."""
        found = [writers.forget() for writers in self._sides]
        return any(found)

    def staging(self) -> Staging:
        """Bring the table's schema to what the known versions need; how batches are staged into it from then on."""
        there = self._evolved()
        landed, keys = self._landing(there)
        made = self._source.selection(self._read_key)
        source, unfit = self._source.decoded(landed, made)
        self._unfit = unfit, keys.incompatible if keys else {}
        unread = [each for writers in self._sides for each in writers.problems.items()]
        misfits = [(number, str(problem)) for each in self._unfit for number, problem in each.items()]
        self._reports.incompatible([*misfits, *unread])
        self._reports.omitted([each for writers in self._sides for each in writers.omissions])
        identity = self._identity(there, landed.target, keys) if self._is_keyed else None
        of_key = identity.names if identity is not None and self._names is not None else ()
        order = identity.order.columns.values() if identity is not None and identity.order is not None else ()
        exact, target = {*of_key, *order}, landed.target.exact({*of_key, *order})
        source = target if made is None else source.exact(made.columns_behind(exact))
        values, of_keys = self._writers.decoder(with_texts(source), unfit), None
        if self._is_keyed:
            values = values.with_deletes()
        if self._keys is not None and keys is not None:
            is_closed = self._is_keyed and not self._names
            of_keys = self._keys.decoder(keys, is_exact=self._is_keyed, is_closed=is_closed)
        masks = masks_of(self._pipeline, self._job.secret)
        decoding = RecordDecoder(
            values=values,
            keys=of_keys,
            tombstones=tombstones(self._pipeline.write),
            lands_truncates=self._pipeline.write.keeps_changes and values.side.has_changes,
            variants=target,
            required=self._writers.required(values.side.target),
            row_key=identity,
            shape=row_shape(self._pipeline, self._job.spark, target, identity, made, masks),
        )
        if self._is_keyed:
            self.may_lack_keys = self._names is None and not self._has_records()
        layout, limits = RowLayout(tuple(f.name for f in landed.target.fields), there, identity), self._limits(there)
        return Staging(named_now(self._pipeline, self._job), self._job, self._mode, decoding, layout, keys, limits)

    def _evolved(self) -> Struct:
        """Bring the table's schema to what the known versions need; return its columns."""
        table = self._pipeline.table.identifier
        with self._source.noted(self._read_key):
            self._reports.evolved(evolve(self._job, table, self._needed))
        self._table = self._job.iceberg.load(table)
        return tables.columns_of(self._job.iceberg, self._table)

    def _limits(self, there: Struct) -> PartitionLimits:
        """Return what the partitions of the table, whose columns are these, cannot hold."""
        return PartitionLimits.of(self._table or self._job.iceberg.load(self._pipeline.table.identifier))

    def _has_records(self) -> bool:
        """Return whether the pipeline has landed a record in its table."""
        return has_records(self._job.iceberg.load(self._pipeline.table.identifier), self._pipeline.name)

    def _made_for(self, key: RowKey) -> tuple[str, ...]:
        """Return the columns of the key that the table was made for, in the order of their ids; `key` is the declared one."""
        return key_of_table(self._pipeline, self._job.iceberg)

    @property
    def _key_fields(self) -> Struct | None:
        """The fields of the record that a key is; None for a key of one value."""
        return None if self._keys is None or self._keys.is_single_value else self._keys.row

    @property
    def _of_values(self) -> tuple[tuple[int, Struct], ...]:
        """The versions of the values, as they are declared to land."""
        return self._source.versions(self._read_key)

    def _read_key(self) -> Struct | None:
        """Return the fields of the record's key that expressions may read next to those of the value."""
        return self._key_fields if self._is_keyed and self._names is None else None

    @property
    def _versions(self) -> tuple[tuple[int, Struct], ...]:
        """The versions of the rows, oldest first. The fields of the key are columns of a table that has one row a key.

        They come before all others, so that no field of a later value takes the name of the key's column. If the key is columns of
        the value, those that the record's key has too come last.
        """
        refused = self._refused  # reads the table, which says what a key is
        fields = self._key_fields if self._is_keyed else None
        versions = tuple(each for each in self._of_values if each[0] not in refused)
        if self._names is not None:
            also = key_version(self._names, self._with_columns(self._named(merge(versions).type)), fields)
            return (*versions, (KEY_VERSION, also)) if also.fields else versions
        return versions if fields is None else ((KEY_VERSION, fields), *versions)

    def _named(self, row: Struct) -> Struct:
        """Return a merged row type with the names that an existing table has for numbered fields."""
        return named_as(self._existing, row) if any(field.ids for field in row.fields) else row

    def read_table_again(self) -> None:
        """Know nothing of the table any more: another one may have taken its place."""
        self._there = None
        if self._keys is not None:
            self._keys.follow(None)

    @property
    def _existing(self) -> Struct:
        """The columns of the table; none if it is not there yet."""
        if self._there is None:
            iceberg, table = self._job.iceberg, self._pipeline.table.identifier
            self._there = tables.columns(iceberg, table) if iceberg.exists(table) else Struct(())
            if self._keys is not None:
                self._keys.follow(self._there)
        return self._there

    def _with_columns(self, row: Struct) -> Struct:
        """Return a merged row type with the columns of an existing table that it lacks: the table has its key and order."""
        # The versions that are known at a start may be those of records that were rejected.
        had, names = self._rows_in(self._existing).fields, {field.name for field in row.fields}
        columns = (column for column in had if column.name not in names and not is_reserved(column.name))
        return replace(row, fields=(*row.fields, *(one for one in columns if same_field(one, row.fields) is None)))

    @property
    def _is_made(self) -> bool:
        """True if the table is there, and has a key and an order as they are declared."""
        rows, write = self._rows_in(self._existing), self._pipeline.write
        declared = {*(self._names or ()), *write.order_columns} - {TIMESTAMP}
        is_there = declared <= {field.name for field in rows.fields}
        return bool(rows.fields) and is_there and self._mode.unfit(rows, self._names or (), write.order_columns) is None

    @property
    def _refused(self) -> Mapping[int, IncompatibleSchema]:
        """The versions that no table of this write mode takes; none if all are so and the declaration is to change for that."""
        versions, names, there = self._of_values, self._names, self._existing
        if names is None and self._is_keyed and self._key_fields is not None:
            names = tuple(field.source for field in self._key_fields.fields)
        rows = [row for _, row in versions]
        key, order = (names_since(one, rows) for one in (names or (), self._pipeline.write.order_columns))
        found = {n: problem for n, row in versions if (problem := self._mode.unfit(row, key, order)) is not None}
        if there.fields:
            fit = tuple(each for each in versions if each[0] not in found)
            numbers = tuple(number for number, _ in fit)
            if self._misfits[0] is not there or self._misfits[1] != numbers:
                with_key = fit  # its columns come first, as in `_versions`
                if self._is_keyed and self._names is None and self._key_fields is not None:
                    with_key = (KEY_VERSION, self._key_fields), *fit
                self._misfits = there, numbers, landing(self._rows_in(there), with_key).incompatible
            found |= {number: why for number, why in self._misfits[2].items() if number != KEY_VERSION}
        return found if len(found) < len(versions) or self._is_made else {}

    def _rows_in(self, columns: Struct) -> Struct:
        """Return the columns of a table that rows land in."""
        if not self._is_keyed:
            return columns
        # The record's key fills the key's columns, whatever a version says of them.
        of_rows = without_own(self._mode, columns)
        return replace(of_rows, fields=tuple(replace(field, required=False) for field in of_rows.fields))

    def _unfit_key(self, row: Struct) -> IncompatibleSchema | None:
        """Return why a version of the record's key names no row of the others: its own types, or those of the values."""
        if not self._is_keyed:
            return None
        if self._names is None:
            what = next(((field, what) for field in row.fields if (what := key_problem(field))), None)
            return incompatible((what[0].source,), f"the field {what[1]}") if what is not None else self._too_wide(row)
        refused = self._refused
        versions = tuple(each for each in self._of_values if each[0] not in refused)
        try:
            also = key_version(self._names, self._with_columns(merge(versions).type), row)
        except InvalidInput:  # no version of the values is known, or none has the columns, which is said elsewhere
            return None
        return merge((*versions, (KEY_VERSION, also))).incompatible.get(KEY_VERSION) or self._too_wide(also)

    def _too_wide(self, key: Struct) -> IncompatibleSchema | None:
        """Return why a version of a key that is a record needs a wider column than an existing table may get."""
        widens = self._pipeline.table.schema_evolution is SchemaEvolution.WIDEN or not self._existing.fields
        return None if widens else too_wide(self._rows_in(self._existing), key)

    def _key_of(self, row: Struct, key: Type = Primitive(Kind.BINARY), keys: KeyLanding | None = None) -> RowKey:  # noqa: B008 # frozen
        """Return the key of rows of this type; `key` is the type of the record's key."""
        refused, fields = self._refused, self._key_fields
        values = self._named(merge([each for each in self._of_values if each[0] not in refused]).type)
        if self._names is not None:
            return value_key(row, self._with_columns(values), self._names, fields, keys)
        single = self._keys.single if self._keys is not None else None
        column = Field(KEY_COLUMN, key) if single is None else replace(single, name=KEY_COLUMN, type=key)
        return row_key(row, values, column, fields, keys)

    def _identity(self, there: Struct, target: Struct, keys: KeyLanding | None) -> RowKey:
        """Return the key of the rows of an existing table. Raises `WriteModeDiffers` if the table has another.

        Its columns are in the order of their ids: another engine may move a column, and the hash depends on their order.
        """
        found, made_for = self._compared(there, target, keys)
        columns = {column.name: column for column in found.columns}
        order, envelope = row_order(self._pipeline.write.order_columns, target), self._pipeline.envelope
        found = replace(found, has_changes=self._pipeline.is_change_data, before=found.in_row_before(target, envelope))
        found = replace(found, plain=plain_key(self._pipeline.topic.key) if self._names is None else None)
        return replace(found, columns=tuple(columns[name] for name in made_for), order=order)

    def _compared(
        self, there: Struct, target: Struct, keys: KeyLanding | None, changes: Sequence[Change] = ()
    ) -> tuple[RowKey, tuple[str, ...]]:
        """Return the key of rows that land in a table of these columns, and the columns of its key when `changes` are made."""
        key = next(field.type for field in there.fields if field.name == KEY_COLUMN)
        found, renamed = self._key_of(target, key, keys), renames(changes)
        made_for = tuple(renamed.get(name, name) for name in self._made_for(found))
        if set(made_for) != set(found.names):
            required = {field.name for field in there.fields if field.required}
            raise WriteModeDiffers.of_key(
                self._pipeline.name,
                self._pipeline.table.identifier,
                kind=self._pipeline.write.kind,
                key=found.names,
                made_for=made_for,
                is_of_records=self._names is None,
                is_renamed=not set(made_for) <= {field.name for field in merge(self._versions).type.fields},
                may_identify=required.issuperset(found.names) and not self._pipeline.write.keeps_changes,
            )
        return found, made_for

    def _landing(self, current: Struct) -> tuple[Landing, KeyLanding | None]:
        """Return how the known versions land in a table of these columns."""
        self._there, evolution = current, self._pipeline.table.schema_evolution
        may_add, may_widen = evolution is not SchemaEvolution.FREEZE, evolution is SchemaEvolution.WIDEN
        keys = self._keys.landing(current, may_add=may_add, may_widen=may_widen) if self._keys else None
        if self._keys is None:
            check_bytes(current, self._pipeline.table.metadata_columns)
        found = landing(self._rows_in(current), self._versions, may_add=may_add, may_widen=may_widen)
        check_types(self._pipeline, found.incompatible)
        return replace(found, incompatible={**found.incompatible, **self._refused}), keys

    def _needed(self, current: Struct) -> tuple[Change, ...]:
        values, keys = self._landing(current)
        if self._is_keyed:  # a table of another key is not changed
            self._compared(current, values.target, keys, values.changes)
        more = own_changes(self._mode, current, values.target)
        return (*values.changes, *(keys.changes if keys else ()), *more)
