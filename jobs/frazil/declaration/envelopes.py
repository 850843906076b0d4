"""Envelopes: how a record of change data holds a row, and what the change is. A document tags an envelope by `type`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from frazil.declaration.checks.constraints import matching
from frazil.declaration.checks.declared import Chosen, declared, default
from frazil.declaration.options import ReplicaIdentity

if TYPE_CHECKING:
    from frazil.declaration.pipeline import Pipeline

_PLACEHOLDER = matching(
    r"[\s\S]{1,1000}", "a placeholder", "Write the connector's unavailable.value.placeholder, 1 to 1000 characters"
)


@declared
class Debezium:
    """Change events of a Debezium connector for one table, plain or flattened by `ExtractNewRecordState`.

    A row has the columns of the source's table: the fields of `after`. `before` is read only with `replica_identity="full"`.
    """

    kind: ClassVar[str] = "debezium"

    operation_column: Annotated[
        bool, "Add the column `_op`: the operation that made the row what it is, r, c, u or d."
    ] = False
    source_column: Annotated[
        bool,
        "Add the column `_source`: what the event says of its place in the source, like transaction and log position.",
    ] = False
    unavailable_value: Annotated[
        str,
        "What the connector writes for a value that it does not know: its unavailable.value.placeholder.",
        _PLACEHOLDER,
    ] = "__debezium_unavailable_value"
    replica_identity: Annotated[
        Chosen[ReplicaIdentity],
        "In a changelog: with full, add the column `_before`, the row before an update or delete, as the event has it.",
    ] = default(ReplicaIdentity.DEFAULT)

    @property
    def has_before(self) -> bool:
        """True if events have the row before a change."""
        return self.replica_identity is ReplicaIdentity.FULL

    def tables(
        self,
        prefix: str,
        *tables: str,
        namespace: str,
        overrides: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
        **shared: Any,
    ) -> tuple[Pipeline, ...]:
        """Return a pipeline for each table of one connector, all with this envelope.

        `prefix` is the connector's `topic.prefix`, and a table is what follows in its topic's name, like `public.orders`. Each
        lands in the table of the same name in `namespace`. Other named arguments are fields of `Topic`, `Table` and `Pipeline`
        that all share; `overrides` has those of single tables, by table.
        """
        from frazil.declaration.several.captured_tables import pipelines  # it imports this module

        return pipelines(self, prefix, tables, namespace, overrides, shared)


Envelope = Debezium
"""The union of the envelopes. Code that depends on the envelope matches on it."""
OPERATION_COLUMN, SOURCE_COLUMN, BEFORE_COLUMN = "_op", "_source", "_before"
"""Columns that an envelope adds if they are declared."""


def added_columns(envelope: Envelope | None) -> tuple[str, ...]:
    """Return the columns that an envelope adds to those of the row."""
    if envelope is None:
        return ()
    declared = {
        OPERATION_COLUMN: envelope.operation_column,
        SOURCE_COLUMN: envelope.source_column,
        BEFORE_COLUMN: envelope.has_before,
    }
    return tuple(name for name, is_declared in declared.items() if is_declared)
