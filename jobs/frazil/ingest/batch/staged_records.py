"""The records of a plan, staged: rows and dead letters in files that no snapshot names, and their counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from frazil.clients.kafka_records import Record
from frazil.decode.record_decoder import RecordDecoder
from frazil.ingest.batch.record_counts import Read, Rejected, Shaped
from frazil.ingest.batch.refused_records import Refused
from frazil.ingest.plan.plan import Plan
from frazil.lake.stage import Staged
from frazil.upsert.stale_keys import RejectedKeys
from frazil.write.mode import StagedRows


@dataclass(frozen=True, slots=True)
class StagedRecords:
    """The rows of a plan, and what was counted of all records that were read.

    `by_driver` are the records that the driver read, as Spark cannot. Rows were decoded by `decoding`; `thorough` rejects none that
    has a row. They were staged `at` this time. `key` are the columns of the table's key, in the order of their ids; none in an
    append table. `shaped` is what the declared shape made of them, and `elsewhere` how many are other tables', by partition.
    """

    plan: Plan
    by_driver: Sequence[Record]
    decoding: RecordDecoder
    thorough: RecordDecoder
    rows: StagedRows
    read: Read
    at: datetime
    key: tuple[str, ...] = ()
    shaped: Shaped = Shaped()  # noqa: RUF009 # frozen
    elsewhere: Mapping[int, int] = field(default_factory=dict)

    @property
    def are_all(self) -> bool:
        """True if each record that was read landed, and no truncate is to be looked for again."""
        return not self.lacks_rows and not self.rows.clears

    @property
    def lacks_rows(self) -> int:
        """The number of records that were read and have no row: they are to be rejected."""
        return self.read.records - self.rows.landed - self.shaped.records - sum(self.elsewhere.values())


@dataclass(frozen=True, slots=True)
class StagedRejected:
    """The dead letters of a batch in files, and what was counted of all records without a row; `keys` are theirs, for upserts.

    `refused` are the records at which error mode `suspend` stops.
    """

    counted: Rejected = Rejected()  # noqa: RUF009 # frozen
    files: Staged | None = None
    keys: RejectedKeys | None = None
    refused: tuple[Refused, ...] = ()
