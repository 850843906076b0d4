"""Where a log ends for a pipeline that reads committed records, and read uncommitted ones before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from frazil.declaration import Pipeline, Reading, Table, Topic
from frazil.declaration.options import Isolation
from frazil.ingest.plan.planner import held_back
from frazil.lake.ledger.last_records import LastRecord, LastRecords
from frazil.lake.ledger.next_offsets import Offsets
from tests.support.fake_kafka import FakeKafka

PIPELINE = Pipeline(topic=Topic("orders", value="avro"), table=Table("shop.orders"))
KNOWN = LastRecords("T", {0: LastRecord(7, "of the record")})


@pytest.mark.parametrize(
    ("committed", "last", "isolation", "end"),
    [
        (8, KNOWN, Isolation.READ_COMMITTED, 8),
        (10, KNOWN, Isolation.READ_COMMITTED, 10),
        (11, KNOWN, Isolation.READ_COMMITTED, 5),
        (8, None, Isolation.READ_COMMITTED, 5),
        (8, LastRecords("T"), Isolation.READ_COMMITTED, 5),
        (4, KNOWN, Isolation.READ_COMMITTED, 5),
        (11, KNOWN, Isolation.READ_UNCOMMITTED, 10),
    ],
    ids=["read", "to the end", "beyond the log", "no last records", "unknown last record", "not read", "uncommitted"],
)
def test_an_open_transaction_ends_the_log_behind_what_was_read_of_it(
    committed: int, last: LastRecords | None, isolation: Isolation, end: int
) -> None:
    """The log has 10 records, and a transaction is open from the sixth on."""
    kafka, pipeline = FakeKafka(), replace(PIPELINE, kafka=Reading(isolation=isolation))
    kafka.create("orders")
    kafka.append("orders", 0, range(5))
    kafka.begin("orders", 0, range(5, 10))
    held = Offsets("orders", "T", {0: committed}, last)
    assert held_back(pipeline, kafka, kafka.offsets("orders", isolation), held)[0].stable == end  # type: ignore[arg-type]
