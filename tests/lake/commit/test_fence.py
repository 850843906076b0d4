"""Each row of the table in docs/exactly-once.md, on values."""

from dataclasses import replace

import pytest

from frazil.errors import Fenced
from frazil.lake.commit.fence import StageAgain, Verdict, check, refusal
from frazil.lake.commit.request import CommitRequest
from frazil.lake.commit.table_state import TableState
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.stage import Staged

HELD = Offsets("orders", "T1", {0: 10, 1: 5})
END = Offsets("orders", "T1", {0: 20, 1: 5})
STAGED = Staged("db.t", "uuid-1", {"a": 1}, (), 0, 0, 0.0)
BATCH = CommitRequest(pipeline="p", run="me", version="1", start=HELD, end=END, committed=HELD, topic_id="T1")


def entry(end: Offsets, run: str = "before") -> Entry:
    return Entry(1, "c", None, end, None, None, run, {})


BASE = TableState("uuid-1", {"a": 1, "later": 2}, entry(HELD), head_follows_tag=True, own_commit=None)


def test_offsets_as_planned_are_ours_to_write() -> None:
    assert check(BASE, STAGED, BATCH) is Verdict.APPEND


def test_no_ledger_as_planned_is_ours_to_write() -> None:
    assert check(replace(BASE, tagged=None), STAGED, replace(BATCH, committed=None)) is Verdict.APPEND


def test_our_own_commit_found_again_is_done() -> None:
    assert check(replace(BASE, tagged=entry(END), own_commit=entry(END)), STAGED, BATCH) is Verdict.DONE


@pytest.mark.parametrize(
    "held",
    [
        Offsets("orders", "T1", {0: 15, 1: 5}),
        Offsets("orders", "T1", {0: 10}),
        Offsets("orders", "T1", {0: 10, 1: 5, 2: 0}),
        Offsets("orders", "T2", {0: 10, 1: 5}),
        END,
    ],
    ids=["further", "fewer partitions", "more partitions", "other topic id", "same batch by another run"],
)
def test_any_other_offsets_fence(held: Offsets) -> None:
    assert check(replace(BASE, tagged=entry(held)), STAGED, BATCH) is Verdict.FENCED


def test_a_ledger_where_none_was_planned_fences() -> None:
    assert check(BASE, STAGED, replace(BATCH, committed=None)) is Verdict.FENCED


def test_a_ledger_that_is_gone_fences() -> None:
    assert check(replace(BASE, tagged=None), STAGED, BATCH) is Verdict.FENCED


def test_another_table_uuid_is_a_replaced_table_even_if_all_else_fits() -> None:
    assert check(replace(BASE, table_uuid="uuid-2", own_commit=entry(END)), STAGED, BATCH) is Verdict.REPLACED


@pytest.mark.parametrize("ids", [{}, {"a": 9}, {"a": 9, "b": 1}], ids=["dropped", "added again", "its name taken"])
def test_a_written_column_that_is_gone_stages_again(ids: dict[str, int]) -> None:
    assert check(replace(BASE, field_ids=ids), STAGED, BATCH) is Verdict.GONE


def test_a_head_behind_the_tag_is_a_rollback_unless_the_operator_means_it() -> None:
    rolled_back = replace(BASE, head_follows_tag=False)
    assert check(rolled_back, STAGED, BATCH) is Verdict.ROLLED_BACK
    assert check(rolled_back, STAGED, replace(BATCH, over_rollback=True)) is Verdict.APPEND


def test_a_topic_with_another_id_after_staging_publishes_nothing() -> None:
    assert check(BASE, STAGED, replace(BATCH, topic_id="T2")) is Verdict.RECREATED


def test_an_operators_decision_since_the_batch_was_planned_stages_again() -> None:
    """It leaves the offsets as they are, and its dead-letter half may be missing."""
    decided = replace(entry(HELD, "operator"), side="file", summary={ledger.EVENTS: "{}"})
    base = replace(BASE, tagged=decided)
    assert check(base, STAGED, BATCH) is Verdict.DECIDED
    assert isinstance(refusal(Verdict.DECIDED, base, STAGED, BATCH), StageAgain)
    for known in (replace(BATCH, settled=1), replace(BATCH, on=1)):
        assert check(base, STAGED, known) is Verdict.APPEND
    assert check(replace(BASE, tagged=replace(decided, side=None)), STAGED, BATCH) is Verdict.APPEND
    assert check(replace(BASE, tagged=replace(decided, summary={})), STAGED, BATCH) is Verdict.APPEND


def test_a_renamed_column_is_the_same_column() -> None:
    renamed = replace(BASE, field_ids={"b": 1})
    assert check(renamed, STAGED, BATCH) is Verdict.APPEND


@pytest.mark.parametrize(("winner", "is_by_another"), [("other", True), ("me", False), ("", False)])
def test_only_another_run_fences_for_good(winner: str, is_by_another: bool) -> None:
    tagged = entry(END, run=winner)
    refused = refusal(Verdict.FENCED, replace(BASE, tagged=tagged if winner else None), STAGED, BATCH)
    assert isinstance(refused, Fenced)
    assert refused.is_by_another_than("me") is is_by_another


def test_a_table_of_another_pipeline_is_not_written() -> None:
    state = replace(BASE, others=frozenset({"before"}))
    assert check(state, STAGED, BATCH) is Verdict.OTHER_PIPELINE
    assert 'Declare name="before" again' in str(refusal(Verdict.OTHER_PIPELINE, state, STAGED, BATCH))


def test_a_table_of_another_mode_is_not_written() -> None:
    upsert = replace(BATCH, mode="upsert")
    assert check(BASE, STAGED, upsert) is Verdict.OTHER_MODE
    assert check(replace(BASE, mode="upsert"), STAGED, upsert) is Verdict.APPEND
    assert check(replace(BASE, mode="upsert"), STAGED, replace(BATCH, mode=None)) is Verdict.APPEND  # without rows
    by_id = replace(BATCH, mode="upsert by id")
    assert check(replace(BASE, mode="upsert"), STAGED, by_id) is Verdict.OTHER_MODE
    refused = refusal(Verdict.OTHER_MODE, BASE, STAGED, upsert)
    assert "made for write mode append, and the declaration has upsert" in str(refused)


@pytest.mark.parametrize(
    ("mode", "made_for", "do"),
    [
        ("upsert by _kafka_key", "upsert", "Run ALTER TABLE db.t SET IDENTIFIER FIELDS _kafka_key, or name another table"),
        (
            "upsert of debezium events by id, line-no",
            "upsert of debezium events by other",
            "Run ALTER TABLE db.t SET IDENTIFIER FIELDS id, `line-no`, or name another table",
        ),
        ("upsert by id ordered by v", "upsert by id", "Declare upsert by id again, or name another table"),
        ("upsert by id", "upsert by id ordered by v", "Declare upsert by id ordered by v again, or name another table"),
        ("changelog by id", "changelog by other", "Declare changelog by other again, or name another table"),
        ("upsert by id", "append", "Declare append again, or name another table"),
    ],
)  # fmt: skip
def test_the_refusal_of_another_mode_order_or_key_names_the_remedy(mode: str, made_for: str, do: str) -> None:
    base, batch = replace(BASE, mode=made_for), replace(BATCH, mode=mode)
    assert check(base, STAGED, batch) is Verdict.OTHER_MODE
    error = refusal(Verdict.OTHER_MODE, base, STAGED, batch)
    assert error.do.startswith(do)
    assert ("SET IDENTIFIER" in error.do) is ("SET IDENTIFIER" in do)
