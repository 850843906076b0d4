"""The state of a table, read once in each attempt to commit: nothing that was read before the transaction counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from frazil.lake.commit.request import CommitRequest
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java, texts
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger import stop
from frazil.lake.ledger.entries import entry, entry_of_head, of
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.key_totals import KeyAccount
from frazil.lake.ledger.lineage import ancestors, head_follows
from frazil.lake.stage import Staged
from frazil.schemas.iceberg import column_names, field_ids, identifier_fields

ANCESTORS = 1000
"""So far back a commit is looked for whose answer was lost."""


@dataclass(frozen=True, slots=True)
class TableState:
    """The state of the transaction's own table.

    `tagged` is the pipeline's newest entry, and `last` the newest that the head has: the tagged one, unless the head was rolled
    back behind it. `own_commit` is the snapshot that has the commit id and run of the attempt. `head` is the head's snapshot,
    `mode` the table's write mode with its key. `is_stopped` says whether a stop of the pipeline is noted. `others` are pipelines of
    other names that have committed to the table.
    """

    table_uuid: str
    field_ids: Mapping[str, int]
    tagged: Entry | None
    head_follows_tag: bool
    own_commit: Entry | None
    last: Entry | None = None
    head: int | None = None
    mode: str = ledger.APPEND
    is_stopped: bool = False
    others: frozenset[str] = frozenset()

    @property
    def keys(self) -> KeyAccount | None:
        """The account of the keys; None for an append table, and before the first commit."""
        return self.last.keys if self.last is not None else None


def read(iceberg: Iceberg, table: Java, staged: Staged, request: CommitRequest) -> TableState:
    """Return the state of the transaction's table."""
    tagged = entry(table, request.pipeline)
    follows, schema, properties = head_follows(iceberg, table, tagged), iceberg.schema_json(table), table.properties()
    # A batch names its key's columns as they were when it was staged: a rename since then changes no field.
    names = {**column_names(schema), **{number: name for name, number in staged.field_ids.items()}}
    return TableState(
        table_uuid=str(table.uuid()),
        field_ids=field_ids(schema),
        tagged=tagged,
        head_follows_tag=follows,
        own_commit=_own_commit(table, tagged, request),
        last=tagged if follows else entry_of_head(iceberg, table, request.pipeline) or tagged,
        head=head.snapshotId() if (head := table.currentSnapshot()) is not None else None,
        mode=ledger.made_for(properties, names, identifier_fields(schema, names)),
        is_stopped=properties.get(stop.property_name(request.pipeline)) is not None,
        others=ledger.writers(texts(table.refs().keySet())) - {request.pipeline},
    )


def _own_commit(table: Java, tagged: Entry | None, request: CommitRequest) -> Entry | None:
    commit_id = request.commit_id(str(table.uuid()))
    for snapshot in islice(ancestors(table, tagged.snapshot_id), ANCESTORS) if tagged is not None else ():
        found = of(snapshot)
        if found.commit_id == commit_id and found.run == request.run:
            return found
        if found.end is not None and found.end.same_as(request.committed):
            return None
    return None
