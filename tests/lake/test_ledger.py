from hypothesis import given
from hypothesis import strategies as st

from frazil.lake.ledger import Counts, Offsets, commit_id


def offsets(at: dict[int, int], topic_id: str = "id") -> Offsets:
    return Offsets("orders", topic_id, at)


@given(st.dictionaries(st.integers(0, 500), st.integers(0, 2**62), max_size=500))
def test_offsets_survive_their_text(at: dict[int, int]) -> None:
    assert Offsets.parse(str(offsets(at))).same_as(offsets(at))


def test_an_absent_partition_equals_only_an_absent_one() -> None:
    assert not offsets({0: 1}).same_as(offsets({0: 1, 1: 0}))
    assert not offsets({0: 1}).same_as(None)


def test_offsets_of_another_topic_id_are_not_the_same() -> None:
    assert not offsets({0: 1}).same_as(offsets({0: 1}, "other"))


def test_equal_offsets_are_equal_texts_in_any_order() -> None:
    assert str(offsets({1: 2, 0: 1})) == str(offsets({0: 1, 1: 2}))


def test_a_commit_id_names_pipeline_table_start_and_end() -> None:
    ids = {
        commit_id("a", "u", offsets({0: 0}), offsets({0: 1})),
        commit_id("b", "u", offsets({0: 0}), offsets({0: 1})),
        commit_id("a", "v", offsets({0: 0}), offsets({0: 1})),
        commit_id("a", "u", offsets({0: 1}), offsets({0: 1})),
        commit_id("a", "u", offsets({0: 0}), offsets({0: 2})),
    }
    assert len(ids) == 5
    assert commit_id("a", "u", offsets({0: 0}), offsets({0: 1})) in ids


def test_counts_survive_their_text() -> None:
    counts = Counts(10, 6, {"too_short": 1}, {"tombstone": 3}, {0: 3}, {1: 2})
    assert Counts.parse(str(counts)) == counts


def test_counts_add_up_only_if_every_record_is_somewhere() -> None:
    assert Counts(3, 1, {"a": 1}, {"b": 1}).adds_up
    assert not Counts(3, 1, {"a": 1}, {}).adds_up
    assert not Counts(3, 4, {}, {}).adds_up
