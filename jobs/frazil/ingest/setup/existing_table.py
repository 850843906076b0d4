"""Decide whether Frazil made an existing table and can continue it, and have the table follow a changed declaration."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from frazil.declaration import Pipeline
from frazil.declaration.options import MetadataColumns
from frazil.declaration.write_modes import identity, marks_deletes
from frazil.errors import ColumnsMissing, ForeignTable, OtherPipeline, WriteModeDiffers
from frazil.ingest.reporting.events import Event, Reporter
from frazil.ingest.setup.table_masks import check_masks
from frazil.job.matched_topics import type_in
from frazil.lake.layout import Layout, changed, check_metadata_columns, differences
from frazil.lake.ledger import entry as ledger
from frazil.schemas.evolution.schema_changes import AddColumn
from frazil.schemas.metadata import (
    CHANGED_AT,
    DELETED_AT,
    INGESTED_AT,
    OP,
    ORDER,
    UNAVAILABLE,
    metadata_fields,
)
from frazil.schemas.types import Field, Struct, Type

if TYPE_CHECKING:
    from frazil.job.context import JobContext
    from frazil.lake.iceberg_java import Iceberg

_ADDED_AGAIN = ("timestamp", "headers", "schema_id")
"""Facts of a record that its row may lack: an append table whose column was dropped gets it again, null in earlier rows."""


def layout_of(iceberg: Iceberg, pipeline: Pipeline) -> Layout:
    """Return the layout of a pipeline's table. Raises `ForeignTable` if another engine made it, or if it is no Iceberg table."""
    from py4j.protocol import Py4JJavaError

    from frazil.lake.iceberg_java import thrown

    table = pipeline.table.identifier
    try:
        found = Layout.of(iceberg.metadata(iceberg.load(table)))
    except Py4JJavaError as error:
        if thrown(error) not in ("NoSuchTableException", "NoSuchIcebergTableException"):
            raise
        raise ForeignTable.of(pipeline.name, table, is_iceberg=False) from None
    check_ours(pipeline, found)
    return found


def named_now(pipeline: Pipeline, job: JobContext) -> Pipeline:
    """Return the pipeline with the present names of the columns that its table, if it is there, is sorted by."""
    if not pipeline.table.sort_by or not job.iceberg.exists(pipeline.table.identifier):
        return pipeline
    return replace(pipeline, table=layout_of(job.iceberg, pipeline).declared(pipeline.table))


def check_ours(pipeline: Pipeline, actual: Layout) -> None:
    """Raise `ForeignTable` if another engine made the table, `OtherPipeline` if another pipeline or new type has it."""
    if not actual.is_ours:
        raise ForeignTable.of(pipeline.name, pipeline.table.identifier)
    if others := actual.writers - {pipeline.name}:
        raise OtherPipeline.of(pipeline.name, pipeline.table.identifier, others)
    if types := _other_type(pipeline, actual):
        raise OtherPipeline.of_type(pipeline.name, pipeline.table.identifier, *types)


def _other_type(pipeline: Pipeline, actual: Layout) -> tuple[str, str] | None:
    """Return the new type that has the table and the pipeline's own, if they differ: each is to have a table of its own."""
    route = pipeline.shape.route
    if route is None or len(route.types) != 1 or not actual.writers:
        return None
    theirs, ours = type_in(actual), route.types[0]
    return (theirs, ours) if theirs != ours and route.is_new(theirs) and route.is_new(ours) else None


def check_write_mode(pipeline: Pipeline, actual: Layout) -> None:
    """Raise `WriteModeDiffers` if the table was made for another mode, and `MasksDiffer` for other masks.

    The key is compared when its columns are known.
    """
    names = {number: name for name, number in actual.columns.items()}
    key = ledger.key_of(actual.properties, names) if pipeline.write.keeps_changes else ()
    made_for, declared = ledger.made_for(actual.properties, names), identity(pipeline, key)
    if made_for != declared:
        raise WriteModeDiffers.of(pipeline.name, pipeline.table.identifier, declared=declared, made_for=made_for)
    check_masks(pipeline, actual)


def columns_to_add(pipeline: Pipeline, actual: Layout, key: Type | None = None) -> tuple[AddColumn, ...]:
    """Return the columns of Frazil's that were dropped, and that a run adds again; `key` is the type of decoded keys.

    Raises `ColumnsMissing` for others, and for those that were renamed.
    """
    is_struct = pipeline.table.metadata_columns is MetadataColumns.STRUCT
    check_metadata_columns(pipeline, actual)
    wanted = _named([*metadata_fields(struct=is_struct, key=key), *own_columns(pipeline, actual.former)])
    missing = {name: actual.name_now(name) for name in wanted if name not in actual.columns}
    prefix = "_kafka." if is_struct else "_kafka_"
    again = {INGESTED_AT.name, *(f"{prefix}{fact}" for fact in _ADDED_AGAIN)}
    again |= {f"{prefix}key"} if not pipeline.write.has_key else set()
    if lost := {name: now for name, now in missing.items() if now is not None or name not in again}:
        raise ColumnsMissing.of(pipeline.name, pipeline.table.identifier, lost)
    return tuple(AddColumn(tuple(name.split(".")), wanted[name].type, wanted[name].doc) for name in missing)


def own_columns(pipeline: Pipeline, former: Collection[str]) -> list[Field]:
    """Return the write mode's own columns that an existing table has from the beginning, or had among its `former` ones.

    The order has any type. Soft deletes may be declared later.
    """
    found = [Field(ORDER, Struct(()))] if pipeline.write.order_columns else []
    if pipeline.write.keeps_changes:
        return [*found, OP, CHANGED_AT, *([UNAVAILABLE] if pipeline.is_change_data else [])]
    return [*found, DELETED_AT] if marks_deletes(pipeline.write) and DELETED_AT.name in former else found


def said(pipeline: Pipeline, actual: Layout) -> tuple[str, ...]:
    """Return every difference between an existing table and its declaration in words, and the columns that it lacks."""
    listed = differences(pipeline, actual)
    if types := _other_type(pipeline, actual):
        return (". ".join(OtherPipeline.said_of_type(*types)),)
    found = tuple(map(str, listed))
    if not actual.is_ours or any(one.is_refused for one in listed):
        return found
    try:
        again = columns_to_add(pipeline, actual)
    except ColumnsMissing as error:
        return (*found, f"{error.what}. {error.do}")
    return (*found, *(f"column {'.'.join(one.path)} was dropped. A run adds it again" for one in again))


def _named(fields: Sequence[Field]) -> dict[str, Field]:
    """Return the columns by name, and the fields of a struct instead of the struct."""
    found: dict[str, Field] = {}
    for field in fields:
        inner = field.type.fields if isinstance(field.type, Struct) and field.name == "_kafka" else ()
        found |= {f"{field.name}.{one.name}": one for one in inner} if inner else {field.name: field}
    return found


def restore_columns(pipeline: Pipeline, job: JobContext, report: Reporter, key: Type | None, actual: Layout) -> None:
    """Add the columns again that another engine dropped, and that rows may lack. Raises as `columns_to_add` does."""
    from frazil.lake.evolve import evolve

    table, lost = pipeline.table.identifier, columns_to_add(pipeline, actual, key)
    if not lost:
        return
    added = evolve(
        job, table, lambda current: [one for one in lost if ".".join(one.path) not in _named(current.fields)]
    )
    if added:
        report(Event.SCHEMA_EVOLVED, changes=[f"{one}, which another engine dropped" for one in added])


def follow(pipeline: Pipeline, job: JobContext, report: Reporter) -> None:
    """Change the layout of an existing table as far as a run does, and report every difference between it and its declaration."""
    from frazil.lake.tables import change_layout

    actual = layout_of(job.iceberg, pipeline)
    sort_fields = actual.declared(pipeline.table).sort_fields
    refused = change_layout(job.iceberg, pipeline.table.identifier, sort_fields, *changed(pipeline, actual))
    for found in differences(pipeline, actual):
        is_done = found.is_applied and not refused
        facts = {"table": pipeline.table.identifier, "field": found.field, "is_applied": is_done}
        do = found.do or (f"The catalog refuses the change: {refused}" if refused else "The table was changed")
        report(Event.TABLE_DIFFERS, message=f"{found.field}: {found.what}. {do}", **facts)
