"""What staging makes of the records of a plan: rows and dead letters in files that no snapshot names, and their counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from frazil.clients.kafka_records import Record
from frazil.decode.decode import RecordDecoder
from frazil.ingest.batch.record_counts import Read, Rejected
from frazil.ingest.batch.refused_records import Refused
from frazil.ingest.plan.plan import Plan
from frazil.lake.stage import Staged
from frazil.upsert.key_changes import KeyChanges
from frazil.upsert.stale_keys import RejectedKeys


@dataclass(frozen=True, slots=True)
class StagedRows:
    """The rows of a plan in files, and what was counted of all records that were read.

    `by_driver` are the records that the driver read, as Spark cannot. Rows were decoded by `decoding`; `thorough` rejects none that
    has a row. They were staged `at` this time. In a table of current state, `changes` are the keys of the batch, `folded` is the
    number of their records, `ties` keys have records of one order in two partitions, and `repeated` records are deletes directly
    behind a delete of their key. `unresolved` changes, by partition and offset, leave out values that are nowhere. `key` are
    the columns of the table's key, in the order of their ids; none in an append table.
    """

    plan: Plan
    by_driver: Sequence[Record]
    decoding: RecordDecoder
    thorough: RecordDecoder
    files: Staged
    read: Read
    at: datetime
    changes: KeyChanges | None = None
    folded: int = 0
    ties: int = 0
    repeated: int = 0
    unresolved: frozenset[tuple[int, int]] = frozenset()
    key: tuple[str, ...] = ()

    @property
    def landed(self) -> int:
        """How many records became a row, or a change of the table's state that a later one of the batch may supersede."""
        return self.files.rows if self.changes is None else self.folded

    @property
    def are_all(self) -> bool:
        """Whether each record that was read landed, and no truncate is to be looked for again."""
        return self.read.records == self.landed and not self.clears

    @property
    def clears(self) -> bool:
        """Whether all rows of the table go."""
        return self.changes is not None and self.changes.clears


@dataclass(frozen=True, slots=True)
class StagedRejected:
    """The dead letters of a batch in files, and what was counted of all records without a row; `keys` are theirs, for a state.

    `refused` are the records at which error mode `suspend` stops.
    """

    counted: Rejected = Rejected()  # noqa: RUF009 # frozen
    files: Staged | None = None
    keys: RejectedKeys | None = None
    refused: tuple[Refused, ...] = ()
