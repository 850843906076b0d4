"""Rows: columns of those rows of a table that meet conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from frazil.errors import CatalogUnavailable
from frazil.lake.read.tables import StoredTable, asking

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A condition on one column: it is `equal` to a value, or `at_least` one and `below` another; all that are given
    hold.
    """

    column: str
    equal: Any = None
    at_least: Any = None
    below: Any = None


def rows(table: StoredTable, columns: Sequence[str], conditions: Sequence[Where] = ()) -> Iterator[pa.RecordBatch]:
    """Columns of the rows that meet all conditions, in no order; files that cannot have such rows are not read."""
    from pyiceberg.expressions import AlwaysTrue, BooleanExpression, EqualTo, GreaterThanOrEqual, LessThan, Reference

    wanted: BooleanExpression = AlwaysTrue()
    for condition in conditions:
        name = Reference(condition.column)
        if condition.equal is not None:
            wanted &= EqualTo(term=name, value=_literal(condition.equal))
        if condition.at_least is not None:
            wanted &= GreaterThanOrEqual(term=name, value=_literal(condition.at_least))
        if condition.below is not None:
            wanted &= LessThan(term=name, value=_literal(condition.below))
    with asking(f"table {table.identifier}"):
        try:
            yield from table.iceberg.scan(row_filter=wanted, selected_fields=tuple(columns)).to_arrow_batch_reader()
        except FileNotFoundError as error:
            raise CatalogUnavailable(
                f"a file of the table does not exist: {error}",
                where=f"table {table.identifier}",
                do="`frazil verify` tells what is lost",
            ) from None


def _literal(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
