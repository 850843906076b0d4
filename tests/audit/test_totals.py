"""The account that each commit carries on, see `frazil.lake.ledger.totals.Totals`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from frazil.audit.accounts.balance import by_topic
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Closed, Counts, Total, Totals

number = st.integers(0, 2**62)
totals = st.builds(
    Totals,
    st.dictionaries(st.integers(0, 500), st.builds(Total, number, number, number)),
    st.lists(
        st.builds(Closed, st.sampled_from(["orders", "invoices"]), st.integers(0, 500), number, number, number, number)
    ).map(tuple),
)


def offsets(at: dict[int, int], topic_id: str = "T1") -> Offsets:
    return Offsets("orders", topic_id, at)


@given(totals)
def test_totals_survive_their_text(totals: Totals) -> None:
    assert Totals.parse(str(totals), totals.closed_topics) == totals


def test_the_text_is_partition_to_start_skipped_and_gaps() -> None:
    assert str(Totals({0: Total(5, 2, 1)})) == '{"0":[5,2,1]}'
    assert str(Totals({0: Total(5)}, (Closed("orders", 0, 1, 9, 3, 4),))) == '{"0":[5,0,0],"closed":[[0,1,9,3,4]]}'


def test_a_pipeline_begins_at_its_start() -> None:
    begun = Totals().after(offsets({0: 7, 1: 0}), offsets({0: 7, 1: 0}), Counts())
    assert begun == Totals({0: Total(7), 1: Total(0)})


def test_skips_and_gaps_add_up_by_partition() -> None:
    before = Totals({0: Total(7, 1, 1), 1: Total(0)})
    counts = Counts(skipped_at={0: 2}, gaps={1: 3})
    after = before.after(offsets({0: 10, 1: 5}), offsets({0: 20, 1: 9}), counts)
    assert after == Totals({0: Total(7, 3, 1), 1: Total(0, 0, 3)})


def test_a_new_partition_begins_where_it_is_first_read() -> None:
    after = Totals({0: Total(0)}).after(offsets({0: 10, 1: 4}), offsets({0: 10, 1: 9}), Counts())
    assert after.at[1] == Total(4)


def test_an_empty_commit_carries_the_totals_on_as_they_are() -> None:
    before = Totals({0: Total(7, 1, 1)}, (Closed("orders", 0, 0, 5),))
    assert before.after(offsets({0: 10}), offsets({0: 10}), Counts()) == before


def test_what_is_missing_of_a_partition_that_a_new_topic_lacks_is_in_its_closed_account() -> None:
    before = Totals({0: Total(0)}, (Closed("orders", 1, 0, 5), Closed("orders", 1, 0, 9, gaps=1)))
    after = before.after(offsets({0: 3}), offsets({0: 3}), Counts(gaps={1: 2}, deleted_at={1: 4}))
    assert after.closed == (Closed("orders", 1, 0, 5), Closed("orders", 1, 0, 9, gaps=3, deleted=4))


def test_a_topic_created_again_closes_all_partitions() -> None:
    before = Totals({0: Total(0, 1, 0), 1: Total(0)})
    after = before.after(offsets({0: 10, 1: 5}), offsets({0: 2}, "T2"), Counts())
    assert after == Totals({0: Total(2)}, (Closed("orders", 0, 0, 10, 1, 0), Closed("orders", 1, 0, 5)))


def test_a_partition_that_goes_back_is_closed_and_the_others_are_not() -> None:
    after = Totals({0: Total(0), 1: Total(0)}).after(offsets({0: 10, 1: 5}), offsets({0: 8, 1: 5}), Counts())
    assert after == Totals({0: Total(8), 1: Total(0)}, (Closed("orders", 0, 0, 10),))


def test_an_entry_without_totals_tells_none() -> None:
    assert Entry.of(1, {}).totals is None
    assert Entry.of(1, {"frazil.totals": '{"0":[0,0,0]}'}).totals == Totals({0: Total(0)})


def test_a_closed_account_keeps_its_topic_beside_the_totals() -> None:
    moved = Offsets("invoices", "T2", {0: 0})
    after = Totals({0: Total(0)}).after(offsets({0: 10}), moved, Counts())
    assert [c.topic for c in after.closed] == ["orders"]
    summary = {"frazil.totals": str(after), "frazil.closed-topics": str(after.closed_topics)}
    parsed = Entry.of(1, summary).totals
    assert parsed == after


def test_accounts_are_split_by_topic_and_the_ledgers_own_comes_first() -> None:
    totals = Totals({0: Total(0)}, (Closed("orders", 0, 0, 10),))
    now, former = by_topic(totals, Offsets("invoices", "T2", {0: 5}))
    assert (now[1].topic, now[0]) == ("invoices", Totals({0: Total(0)}))
    assert (former[1].topic, former[0].closed) == ("orders", totals.closed)


def test_a_topic_that_was_created_again_is_one_topic() -> None:
    totals = Totals({0: Total(0)}, (Closed("orders", 0, 0, 10), Closed("orders", 0, 0, 7)))
    (now,) = by_topic(totals, Offsets("orders", "T2", {0: 5}))
    assert now[0] == totals
