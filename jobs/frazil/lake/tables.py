"""Create tables, with defaults that stay healthy under many small commits, and inspect them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JJavaError

from frazil.declaration.partitioning import PartitionField, SortField, Transform
from frazil.errors import InvalidInput
from frazil.lake.data_location import place_data
from frazil.lake.iceberg_java import Iceberg, failed, message, thrown
from frazil.lake.java_classes import Java, items
from frazil.schemas.iceberg import FIELD_IDS, field_ids, kept_ids, row_type, schema_json
from frazil.schemas.sources import check_sources
from frazil.schemas.types import Struct

_REFUSALS = frozenset({"ValidationException", "IllegalArgumentException", "UnsupportedOperationException"})
_ONE = {"years": "year", "months": "month", "days": "day", "hours": "hour"}


def is_refused(error: Py4JJavaError) -> bool:
    """Return whether Iceberg says that a request is wrong: the same request is refused again.

    A type that the table's format version lacks is one, of an exception that says also that a client was closed.
    """
    return thrown(error) in _REFUSALS or (
        thrown(error) == "IllegalStateException" and message(error).startswith("Invalid schema")
    )


def create(
    iceberg: Iceberg,
    table: str,
    row: Struct,
    *,
    partition_by: Sequence[PartitionField] = (),
    properties: Mapping[str, str],
    key: Collection[str] = (),
    required: Collection[str] = (),
) -> bool:
    """Create the table if it is missing; returns whether this call made it.

    `key` are the columns that identify a row, and `required` others that are never null.

    A catalog that refuses a transform at creation gets the partition fields afterwards. So does a table that has no
    snapshot yet and no partition fields: its creator may have been killed in between. The same goes for the place of its data
    files, if the catalog names one (`place_data`).
    """
    if iceberg.exists(table):
        _partition(iceberg, table, partition_by)
        place_data(iceberg, table)
        return False
    iceberg.create_namespace(table.rpartition(".")[0])
    schema = schema_json(row, key=key, required=required)
    check_sources(partition_by, field_ids(dict(schema)), table=table, field="partition_by")
    spec = _spec_json(schema, partition_by)
    try:
        try:
            iceberg.create(table, schema, spec, {**properties, **kept_ids(row, schema)})
        except Py4JJavaError as error:
            if spec is None or thrown(error) in ("AlreadyExistsException", "ValidationException"):
                raise
            iceberg.create(table, schema, None, {**properties, **kept_ids(row, schema)})
            _partition(iceberg, table, partition_by)
        place_data(iceberg, table)
    except Py4JJavaError as error:
        if thrown(error) == "AlreadyExistsException":
            return False
        if is_refused(error):
            raise InvalidInput(
                f"the table cannot be created so: {message(error)}",
                where=f"table {table}",
                do="Correct its partition fields or properties",
            ) from None
        raise failed("the table could not be created", error, where=f"table {table}") from None
    return True


def _partition(iceberg: Iceberg, table: str, partition_by: Sequence[PartitionField]) -> None:
    """Give a table without snapshots and partition fields its fields. Another driver may do so at once; one is enough."""

    def partitioned(loaded: Java) -> Java | None:
        if not partition_by or loaded.currentSnapshot() is not None or not loaded.spec().isUnpartitioned():
            return None
        names = field_ids(iceberg.schema_json(loaded))
        check_sources(partition_by, names, table=table, field="partition_by")
        update = loaded.updateSpec()
        for field in partition_by:
            update = update.addField(
                _field_name(field, names), iceberg.term(field.transform, field.source, field.argument)
            )
        return update

    iceberg.change(table, partitioned)


def change_layout(
    iceberg: Iceberg,
    table: str,
    sort: Sequence[SortField],
    sets: Mapping[str, str],
    removes: Collection[str],
    sorts: bool,
) -> str:
    """Set and remove table properties, and with `sorts` the sort order; return why the catalog refuses that, or nothing."""
    if not (sets or removes or sorts):
        return ""
    loaded = iceberg.load(table)
    try:
        if sets or removes:
            update = loaded.updateProperties()
            for name, value in sets.items():
                update = update.set(name, value)
            for name in removes:
                update = update.remove(name)
            update.commit()
        if sorts:
            order = loaded.replaceSortOrder()
            nulls = iceberg.classes.load("NullOrder")
            for field in sort:
                place = nulls.getField("NULLS_FIRST" if field.nulls_first else "NULLS_LAST").get(None)
                source = iceberg.term(Transform.IDENTITY, field.source, None)
                order = order.asc(source, place) if field.ascending else order.desc(source, place)
            order.commit()
    except Py4JJavaError as error:
        return f"{thrown(error)}: {message(error)}"
    return ""


def columns(iceberg: Iceberg, table: str) -> Struct:
    """Return the table's columns as a row type."""
    return columns_of(iceberg, iceberg.load(table))


def columns_of(iceberg: Iceberg, loaded: Java) -> Struct:
    """Return the columns of a loaded table as a row type, with the ids that the table keeps."""
    found = row_type(iceberg.schema_json(loaded), loaded.properties().get(FIELD_IDS))
    specs = [loaded.spec()] if len(loaded.specs()) == 1 else loaded.specs().values()  # each access is a call
    fields = [field for spec in specs if spec.isPartitioned() for field in items(spec.fields())]
    names = {
        str(f.name()): str(loaded.schema().findColumnName(f.sourceId())) if f.transform().isIdentity() else ""
        for f in fields
    }
    return _with_taken(found, names)


def _with_taken(row: Struct, names: Mapping[str, str]) -> Struct:
    """Return the row with the names that partition fields take in it and in its structs; each with its column, or empty."""
    fields = []
    for field in row.fields:
        inner = {name.removeprefix(f"{field.name}."): "" for name in names if name.startswith(f"{field.name}.")}
        of = _with_taken(field.type, inner) if inner and isinstance(field.type, Struct) else field.type
        fields.append(replace(field, type=of))
    taken = {name: of for name, of in names.items() if all(name != field.name for field in fields)}
    return replace(row, fields=tuple(fields), taken=taken)


def _spec_json(schema: Mapping[str, Any], partition_by: Sequence[PartitionField]) -> dict[str, Any] | None:
    if not partition_by:
        return None
    ids = field_ids(dict(schema))
    return {
        "spec-id": 0,
        "fields": [
            {
                "name": _field_name(field, ids),
                "transform": f"{_transform(field)}[{field.argument}]"
                if field.argument is not None
                else _transform(field),
                "source-id": ids[field.source],
                "field-id": 1000 + position,
            }
            for position, field in enumerate(partition_by)
        ],
    }


def _transform(field: PartitionField) -> str:
    return _ONE.get(field.transform, str(field.transform))


def _field_name(field: PartitionField, columns: Collection[str]) -> str:
    """Return the name that Iceberg derives, with an underscore after it where a column has that name."""
    suffix = {"identity": "", "truncate": "_trunc"}.get(field.transform, f"_{_transform(field)}")
    name = f"{field.source}{suffix}"
    while suffix and name in columns:
        name += "_"
    return name
