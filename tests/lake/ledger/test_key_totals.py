"""The counts of a state's batch, and the account of its keys, as a summary holds them."""

from __future__ import annotations

import pytest

from frazil.declaration import Append, Debezium, Order, Pipeline, Table, Topic, Upsert
from frazil.declaration.write_modes import WriteMode, identity
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.key_totals import KeyAccount
from frazil.lake.ledger.totals import Counts


def test_what_is_written_is_read_again() -> None:
    account = KeyAccount(
        rows=3, hash=2**64 - 1, records=9, inserted=1, deleted=2, staged=5, until=4, late=7, doubled=6, removed=8
    )
    assert KeyAccount.parse(str(account)) == account
    counts = Counts(20, 5, {"key_null": 1}, deletes=3, superseded=4, late=7, marked=2, order_ties=1)
    assert Counts.parse(str(counts)) == counts
    assert counts.adds_up


def test_an_append_table_stores_none_of_it() -> None:
    assert "late" not in str(Counts(5, 5)) + str(KeyAccount())
    assert not Counts(5, 4).adds_up


def test_late_records_are_accounted_for_and_rows_that_are_marked_are_no_further_records() -> None:
    assert Counts(12, 5, late=7).adds_up
    assert not Counts(12, 5, deletes=5, marked=2).adds_up


@pytest.mark.parametrize(
    ("mode", "envelope"),
    [
        (Append(), None),
        (Upsert(), None),
        (Upsert(order_by=Order(("a", "_kafka_timestamp")), on_tombstone="soft_delete"), None),
        (Upsert(), Debezium()),
    ],
)
def test_a_table_says_for_which_mode_order_and_envelope_it_was_made(mode: WriteMode, envelope: Debezium | None) -> None:
    topic = Topic("orders", value="avro", key="avro")
    pipeline = Pipeline(topic=topic, table=Table("shop.orders"), write=mode, envelope=envelope)
    kind = envelope.kind if envelope else None
    assert ledger.made_for(ledger.mode_properties(mode.kind, mode.order_columns, kind)) == identity(pipeline)
