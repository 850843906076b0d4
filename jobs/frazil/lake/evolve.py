"""Apply schema changes, which are values, to a table in one commit. They add and widen; applied twice they do nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from py4j.protocol import Py4JJavaError

from frazil.errors import IncompatibleSchema
from frazil.lake.commit.request import Committer
from frazil.lake.iceberg_java import Iceberg, failed, said
from frazil.lake.java_classes import Java
from frazil.lake.tables import columns_of, is_refused
from frazil.schemas.evolution.schema_changes import (
    AddColumn,
    Change,
    CommentColumn,
    IdentifyColumn,
    RelaxColumn,
    RenameColumn,
    WidenColumn,
    applied,
)
from frazil.schemas.iceberg import kept_ids, schema_json
from frazil.schemas.types import Field, Struct, Type

ATTEMPTS = 10


def evolve(job: Committer, table: str, changes: Callable[[Struct], Sequence[Change]]) -> tuple[Change, ...]:
    """Apply what `changes` asks of the table's current row type, in one schema commit; return what was applied.

    `changes` is asked again when another writer's commit came first, so two drivers that evolve at once agree.
    """
    iceberg = job.iceberg
    failure: Py4JJavaError | None = None
    for attempt in range(ATTEMPTS):
        if attempt:
            job.wait(min(2.0, 0.05 * 2**attempt))
        loaded = iceberg.load(table)
        columns = columns_of(iceberg, loaded)
        wanted = tuple(changes(columns))
        if not wanted:
            return ()
        transaction = loaded.newTransaction()
        update = transaction.updateSchema()
        for change in wanted:
            _add_to(update, iceberg, change)
        job.failpoint("evolve.filled")
        try:
            update.commit()
            for name, value in kept_ids(applied(columns, wanted), iceberg.schema_json(transaction.table())).items():
                properties = transaction.updateProperties()
                properties.set(name, value)
                properties.commit()
            transaction.commitTransaction()
        except Py4JJavaError as error:
            failure = error
            if is_refused(error):
                raise IncompatibleSchema(
                    f"the table's schema cannot follow: {said(error)}",
                    where=f"table {table}",
                    do=f"Look at these changes: {'; '.join(map(str, wanted))}",
                ) from None
            continue
        job.failpoint("evolve.committed")
        return wanted
    assert failure is not None
    raise failed("the schema commit did not succeed", failure, where=f"table {table}")


def java_type(iceberg: Iceberg, of: Type) -> Java:
    """Return a row type as Iceberg's Java type."""
    return iceberg.schema(schema_json(Struct((Field("type", of),)))).columns().get(0).type()


def _add_to(update: Java, iceberg: Iceberg, change: Change) -> None:
    name = ".".join(change.path)
    match change:
        case AddColumn(path=path, type=of, doc=doc):
            parent = ".".join(path[:-1]) or None
            update.addColumn(parent, path[-1], java_type(iceberg, of), doc or None)
        case WidenColumn(new=new):
            update.updateColumn(name, java_type(iceberg, new).asPrimitiveType())
        case RelaxColumn():
            update.makeColumnOptional(name)
        case CommentColumn(doc=doc):
            update.updateColumnDoc(name, doc)
        case RenameColumn(name=new_name):
            update.renameColumn(name, new_name)
        case IdentifyColumn():  # a property of the table
            pass
