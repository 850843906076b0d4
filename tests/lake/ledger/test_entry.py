import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import LedgerLost, LedgerTooNew
from frazil.exit_codes import Exit, exit_of
from frazil.lake.ledger.entry import MARK, MOST_PLAIN, Entry, commit_id, compact, plain, stored
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Counts, Totals


def offsets(at: dict[int, int], topic_id: str = "id") -> Offsets:
    return Offsets("orders", topic_id, at)


@given(st.dictionaries(st.integers(0, 500), st.integers(0, 2**62), max_size=500))
def test_offsets_survive_their_text(at: dict[int, int]) -> None:
    assert Offsets.parse(str(offsets(at))).same_as(offsets(at))


@pytest.mark.parametrize(
    "damaged",
    [
        '{"topic":"orders","topic_id":null,"offsets":{"0":1}}',
        '{"topic":"orders","topic_id":"id","offsets":{"0":-5}}',
        '{"topic":"orders","topic_id":"id","offsets":{"-1":5}}',
    ],
)
def test_damaged_offsets_are_named_and_not_believed(damaged: str) -> None:
    with pytest.raises(LedgerLost, match=r"frazil\.end in the snapshot's summary is damaged"):
        _ = Entry.of(7, summary(1, 3) | {"frazil.end": damaged}, 0).end


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


def summary(partitions: int, offset: int, **more: str) -> dict[str, str]:
    start, end = (offsets(dict.fromkeys(range(partitions), at)) for at in (offset, offset + 1))
    totals = Totals().after(start, end, Counts(gaps=dict.fromkeys(range(partitions), 1)))
    return {
        "frazil.format": "1",
        "frazil.start": str(start),
        "frazil.end": str(end),
        "frazil.totals": str(totals),
        "frazil.run": "r",
        **more,
    }


def test_offsets_of_a_thousand_partitions_are_stored_compact_and_read_as_they_were() -> None:
    written = summary(1000, 1_234_567)
    held = stored(written)
    assert held["frazil.format"] == "2"
    assert sum(map(len, held.values())) < sum(map(len, written.values())) / 5
    assert (Entry.of(1, held), Entry.of(1, held).totals) == (
        Entry.of(1, {**written, "frazil.format": "2"}),
        Entry.of(1, written).totals,
    )


def test_offsets_of_300_partitions_are_stored_plain_however_large() -> None:
    held = stored({key: value for key, value in summary(300, 2**63 - 2).items() if key != "frazil.totals"})
    assert held["frazil.format"] == "1"
    assert held["frazil.end"].startswith("{")


def test_a_ledger_of_a_later_format_is_refused_by_name() -> None:
    with pytest.raises(LedgerTooNew, match=r"has format 3.*Use the release that wrote it \(9\.0\)"):
        Entry.of(1, summary(1, 1) | {"frazil.format": "3", "frazil.version": "9.0"})


def told(damaged: dict[str, str]) -> None:
    entry = Entry.of(7, damaged)
    for value in ("totals", "keys", "schema_ids", "event", "number"):
        getattr(entry, value)


@pytest.mark.parametrize("key", ["start", "end", "counts", "totals", "keys", "schema-ids", "accepted", "decision"])
def test_a_damaged_value_is_a_lost_ledger_that_names_it(key: str) -> None:
    """`frazil verify` ended as a defect of Frazil, with exit code 70."""
    damaged = summary(1, 1) | {"frazil.pipeline": "orders", f"frazil.{key}": '{"a'}
    with pytest.raises(LedgerLost, match=rf"pipeline orders, snapshot 7: frazil\.{key} in .* is damaged") as found:
        told(damaged)
    assert exit_of(found.value) is Exit.DECISION_REQUIRED


@pytest.mark.parametrize("name", ["read", "written", "rejected", "skipped", "skipped_at", "gaps"])
def test_counts_that_lack_a_member_are_damaged(name: str) -> None:
    document = json.loads(str(Counts(read=3, written=3)))
    assert Counts.parse(json.dumps({**document, "of_a_later_release": 1})) == Counts(read=3, written=3)
    del document[name]
    with pytest.raises(KeyError, match=name):
        Counts.parse(json.dumps(document))


@given(st.text(), st.integers(1, 20_000))
def test_a_compressed_value_is_its_own_text_again(text: str, times: int) -> None:
    assert plain(compact(text * (times // (len(text) + 1)))) == text * (times // (len(text) + 1))


def test_only_a_long_value_is_compressed() -> None:
    assert compact("x" * MOST_PLAIN) == "x" * MOST_PLAIN
    text = json.dumps({str(p): 1_000_000 + p for p in range(1000)})
    assert compact(text).startswith(MARK)
    assert len(compact(text)) < len(text) / 2
