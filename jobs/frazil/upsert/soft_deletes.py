"""Soft deletes: the row of a deleted key stays, with its values and the time of its delete.

The values are those of the last change in the batch that wrote the row, or those of the row in the table. A source may follow its
delete by a record that says nothing of it: the row is deleted already, and keeps what the delete said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Column, Window, WindowSpec
from pyspark.sql import functions as F

from frazil.schemas.metadata import DELETED_AT
from frazil.upsert.omitted_values import IS_GONE
from frazil.upsert.resolver_protocol import (
    IS_DELETE,
    KAFKA_OFFSET,
    KAFKA_PARTITION,
    KAFKA_TIMESTAMP,
    LACKS,
    OMITTED,
    PLACE,
    place,
)

if TYPE_CHECKING:
    from frazil.upsert.fold import Rules

IS_BARE = "_frazil_bare"
"""Column that says of a soft delete whether neither it nor the change before it knows the delete of the source."""
VALUES, BEFORE = "_frazil_values", "_frazil_before"
"""Columns of a batch's changes: the values that a delete keeps, and what the change before it says if it is a delete, too."""


def kept(key: Sequence[str], values: Sequence[str], rules: Rules, newest_first: WindowSpec) -> dict[str, Column]:
    """Return the columns `VALUES` and `BEFORE` of a batch's changes.

    The values are those of the last record with a value that took effect before the delete. A record that came after one of a
    higher order changed nothing, so that its values are in no row.
    """
    took_effect = ~F.col(IS_DELETE)
    if rules.ordered:
        before = Window.partitionBy(*key).orderBy(KAFKA_PARTITION, KAFKA_OFFSET)
        highest = F.max(place()).over(before.rowsBetween(Window.unboundedPreceding, -1))
        took_effect &= highest.isNull() | (place() > highest)
    if rules.fills:
        took_effect &= ~F.col(IS_GONE)
    of_record = [OMITTED] if rules.fills else []
    held = F.struct(*values, *of_record, *([place().alias(PLACE)] if rules.ordered else []))
    every = newest_first.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    of_change = F.when(F.col(IS_DELETE), F.struct(DELETED_AT.name, *rules.about))
    return {
        VALUES: F.first(F.when(took_effect, held), ignorenulls=True).over(every),
        BEFORE: F.lead(of_change).over(newest_first),
    }


def marked(values: Sequence[str], rules: Rules) -> dict[str, Column]:
    """Return the columns of a batch's changes in which a delete has the values that it keeps, or `LACKS` them, and its time."""
    is_delete, held, before = F.col(IS_DELETE), F.col(VALUES), F.col(BEFORE)
    names = [*values, OMITTED] if rules.fills else values
    found = {name: F.when(is_delete, held[name]).otherwise(F.col(name)) for name in names}
    omits, keeps_none = F.lit(False), held.isNull()
    if rules.fills:
        omits, keeps_none = F.col(OMITTED).isNotNull(), keeps_none | held[OMITTED].isNotNull()
    found[LACKS] = F.when(is_delete, keeps_none).otherwise(omits)
    of_source = F.coalesce(F.col(DELETED_AT.name), before[DELETED_AT.name])
    at = F.coalesce(of_source, F.col(KAFKA_TIMESTAMP), F.timestamp_seconds(F.lit(0)))
    found[DELETED_AT.name] = F.when(is_delete, at)
    says_nothing = is_delete & F.col(DELETED_AT.name).isNull()
    found[IS_BARE] = says_nothing & of_source.isNull()
    is_repeated = says_nothing & before.isNotNull()
    return found | {name: F.when(is_repeated, before[name]).otherwise(F.col(name)) for name in rules.about}


def has_row(rules: Rules) -> Column:
    """Return whether a delete has a row without the one in the table.

    Where rows are ordered it has one without values, too: else a record of a lower order would bring the key back.
    """
    return F.lit(rules.soft) & (~F.col(LACKS) | F.lit(rules.ordered))


def columns_of_delete(columns: Sequence[str], rules: Rules) -> tuple[str, ...]:
    """Return the columns with what the source said of a delete, if the source of a batch with these `columns` does."""
    return (DELETED_AT.name, *rules.about) if rules.soft and OMITTED in columns else ()


def repeated(names: Sequence[str], held: str) -> dict[str, Column]:
    """Return the `columns_of_delete` of a change; those of the row in the table, prefixed `held`, if it is deleted already."""
    is_repeated = F.col(IS_BARE) & F.col(held + DELETED_AT.name).isNotNull()
    return {name: F.when(is_repeated, F.col(held + name)).otherwise(F.col(name)).alias(name) for name in names}
