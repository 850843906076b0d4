"""The proof holds on good tables, and fails on each way in which a table can be bad."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from frazil import declaration
from frazil.audit.finding import Finding, Flaw, Outcome, Range, worst
from frazil.audit.verification import Verification
from frazil.audit.verify import verify
from frazil.declaration import At, Changelog, Latest, Upsert
from frazil.declaration.options import MetadataColumns
from frazil.errors import CatalogUnavailable
from frazil.lake.commit.request import CommitRequest
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Counts, Total, Totals
from tests.audit.audited_table import Landed, path, rewrite
from tests.support.busy_lake import BusyLake


def flaws(found: Verification) -> set[Flaw]:
    return {finding.flaw for finding in found.findings}


def missing(found: Verification) -> list[tuple[int | None, tuple[Range, ...]]]:
    return [(f.partition, f.ranges) for f in found.findings if f.flaw is Flaw.MISSING]


# ── Good tables ─────────────────────────────────────────────────────────────────────────────────
def test_a_good_table_is_proven_from_manifests_and_by_reading(landed: Landed) -> None:
    found = landed.verify()
    assert (found.outcome, found.exit_code, found.findings) == (Outcome.PROVEN, 0, ())
    first, second = found.partitions
    assert (first.read, first.landed, first.dead_lettered) == (200, 199, 1)
    assert (second.read, second.landed, second.dead_lettered) == (60, 59, 1)
    assert all(one.adds_up for one in found.partitions)
    table, dead = found.reads
    assert (table.files_by_manifest, table.rows_by_manifest, table.files_by_scan, table.rows_by_scan) == (
        2,
        150,
        2,
        108,
    )
    assert (dead.files_by_scan, dead.rows_by_scan) == (1, 2)
    deep = landed.verify(deep=True)
    assert deep.outcome is Outcome.PROVEN
    assert [(read.files_by_manifest, read.rows_by_scan) for read in deep.reads] == [(0, 258), (0, 2)]


def test_files_of_many_partitions_are_read(tmp_path: Path) -> None:
    lake = Landed(tmp_path, partitions=7)
    lake.land(dict.fromkeys(range(7), 30), per_file=3)
    found = lake.verify()
    assert found.outcome is Outcome.PROVEN
    assert (found.reads[0].files_by_manifest, found.reads[0].files_by_scan) == (1, 2)


def test_the_struct_layout_is_read_too(tmp_path: Path) -> None:
    lake = Landed(tmp_path, metadata_columns=MetadataColumns.STRUCT)
    lake.land({0: 100, 1: 50}, rejected=[(1, 3)])
    found = lake.verify()
    assert found.outcome is Outcome.PROVEN
    assert found.reads[0].files_by_scan == 2  # PyIceberg writes no bounds of nested columns


def test_a_long_topic_name_that_metrics_cut_is_read(tmp_path: Path) -> None:
    lake = Landed(tmp_path, topic="shop.public.orders.v1", full=("partition", "offset"))
    lake.land({0: 100, 1: 50})
    found = lake.verify()
    assert (found.outcome, found.reads[0].files_by_scan) == (Outcome.PROVEN, 2)


def test_rows_of_a_topic_that_begins_alike_do_not_stand_in_for_lost_ones(tmp_path: Path) -> None:
    lake = Landed(tmp_path, topic="shop.public.orders.v1", full=("partition", "offset"))
    lake.land({0: 100, 1: 50})
    lake.table.delete("_kafka_partition = 0")
    others = lake.files([(0, offset) for offset in range(100)], topic="shop.public.orders.v2")
    lake.append(lake.pipeline.table.identifier, others, {}, tag=False)
    found = lake.verify()
    assert (flaws(found), missing(found)) == ({Flaw.MISSING}, [(0, (Range(0, 100),))])


def test_skips_and_gaps_are_what_the_commits_say(tmp_path: Path) -> None:
    lake = Landed(tmp_path)
    lake.land({0: 100, 1: 50}, skipped=[(0, 5), (0, 6)], gaps=[(1, 49)])
    found = lake.verify()
    assert found.outcome is Outcome.PROVEN
    assert [(one.skipped, one.gaps) for one in found.partitions] == [(2, 0), (0, 1)]


def test_a_pipeline_that_began_late_reads_from_there(tmp_path: Path) -> None:
    lake = Landed(tmp_path, begin={0: 1_000_000_000_000})
    lake.land({0: 1_000_000_000_010})
    (one,) = lake.verify().partitions
    assert (one.start, one.read, one.landed) == (1_000_000_000_000, 10, 10)


def test_a_partition_added_later_begins_where_it_was_first_read(landed: Landed) -> None:
    landed.held[2] = 0
    landed.land({2: 10})
    assert landed.verify().outcome is Outcome.PROVEN


def test_a_ledger_that_was_taken_from_the_rows_starts_the_account_over(landed: Landed) -> None:
    """The commits before are still there, and do not lead to it."""
    start, end = (Offsets("orders", "T1", dict(enumerate(at))) for at in ((0, 0), (200, 60)))
    lost = '{"event":"ledger-lost","reason":"the tag is gone"}'
    batch = CommitRequest(
        pipeline="orders", run="run", version="0.1.0", start=start, end=end, committed=None, topic_id="T1", accepted=lost
    )  # fmt: skip
    summary = batch.summary(str(landed.table.metadata.table_uuid))
    summary[ledger.TOTALS] = str(Totals().after(start, end, Counts()))
    summary[ledger.DECISION] = str(landed.decided[str(landed.table.metadata.table_uuid)])
    landed.append(landed.pipeline.table.identifier, (), summary)
    found = landed.verify(deep=True)
    assert found.outcome is Outcome.PROVEN, found.findings


def test_a_dead_letter_table_that_was_dropped_is_said_to_be_another_one(landed: Landed) -> None:
    landed.land({0: 210, 1: 70})
    landed.catalog.drop_table(landed.pipeline.table.dead_letters)
    assert {Flaw.MISMATCH, Flaw.MISSING} == {finding.flaw for finding in landed.verify().findings}


def test_a_table_that_was_created_again_does_not_count_the_dead_letters_of_the_first_as_its_own(landed: Landed) -> None:
    identifier, schema = landed.pipeline.table.identifier, landed.table.schema()
    landed.catalog.drop_table(identifier)
    landed.catalog.create_table(identifier, schema)
    landed.held, landed.totals = {0: 0, 1: 0}, Totals()
    landed.commit({}, Counts(), {})
    landed.land({0: 100, 1: 50})
    assert Flaw.MISMATCH in {finding.flaw for finding in landed.verify().findings}


def test_a_table_without_rows_yet_is_proven(tmp_path: Path) -> None:
    assert Landed(tmp_path).verify().outcome is Outcome.PROVEN


def test_rows_of_another_topic_are_left_alone(landed: Landed) -> None:
    landed.append(landed.pipeline.table.identifier, landed.files([(0, 3)], topic="payments"), {}, tag=False)
    found = landed.verify()
    assert found.outcome is Outcome.PROVEN
    assert found.reads[0].others == 1
    assert any("is not Frazil's: append by an unknown engine, 1 rows added" in note for note in found.notes)


ACCEPTED = '{"at":"2026-01-31T12:00:00+00:00","event":"rows-deleted","reason":"erased","rows":2}'


def test_rows_that_an_operator_accepted_as_deleted_are_a_term_of_the_account(landed: Landed) -> None:
    landed.table.delete("_kafka_partition = 0 and _kafka_offset in (42, 43)")
    found = landed.verify()
    assert [(one.flaw, one.count) for one in found.findings] == [(Flaw.MISSING, 2)]
    assert any("`frazil accept orders rows-deleted --reason …`" in text for text in found.cautions)
    landed.commit({}, Counts(deleted_at={0: 2}), {}, accepted=ACCEPTED)
    landed.land({0: 210, 1: 60})
    found = landed.verify()
    assert (found.outcome, found.sum_of("landed"), found.sum_of("deleted")) == (Outcome.PROVEN, 266, 2)
    assert all(one.adds_up for one in found.partitions)
    landed.append(landed.pipeline.table.identifier, landed.files([(0, 42)]), {}, tag=False)
    assert [(one.flaw, one.count) for one in landed.verify().findings] == [(Flaw.EXCESS, 1)]
    landed.table.delete("_kafka_partition = 0 and _kafka_offset in (42, 44)")
    assert [(one.flaw, one.count) for one in landed.verify().findings] == [(Flaw.MISSING, 1)]


def test_a_verification_is_a_json_document(landed: Landed) -> None:
    landed.paths()[0].unlink()
    document = json.loads(json.dumps(landed.verify().document()))
    assert document["outcome"] == "not_proven"
    assert {finding["flaw"] for finding in document["findings"]} == {"file_lost", "missing"}


# ── Files ───────────────────────────────────────────────────────────────────────────────────────
def test_a_removed_data_file_is_found(landed: Landed) -> None:
    landed.paths()[0].unlink()
    found = landed.verify()
    assert found.exit_code == 1
    assert flaws(found) == {Flaw.FILE_LOST, Flaw.MISSING}
    assert missing(found) == [(0, (Range(0, 100),))]


def test_a_row_removed_from_a_dense_file_behind_its_manifest_is_found(landed: Landed) -> None:
    rewrite(landed.paths()[0], lambda row: row["_kafka_offset"] != 42)
    found = landed.verify()
    assert flaws(found) == {Flaw.FILE_ALTERED, Flaw.MISSING}
    assert missing(found) == [(0, (Range(42, 43),))]


def test_a_row_deleted_by_another_engine_is_found_with_the_snapshot_that_did_it(landed: Landed) -> None:
    landed.table.delete("_kafka_partition = 1 and _kafka_offset = 20")
    found = landed.verify()
    assert flaws(found) == {Flaw.MISSING}
    assert missing(found) == [(1, (Range(20, 21),))]
    assert any("is not Frazil's" in note for note in found.notes)


def test_a_missing_row_among_skipped_ones_is_counted(tmp_path: Path) -> None:
    lake = Landed(tmp_path)
    lake.land({0: 100, 1: 50}, skipped=[(0, 5), (0, 6)])
    lake.table.delete("_kafka_partition = 0 and _kafka_offset = 70")
    (finding,) = lake.verify().findings
    assert (finding.flaw, finding.count) == (Flaw.MISSING, 1)
    assert finding.ranges == (Range(5, 7), Range(70, 71))


def test_a_removed_dead_letter_is_found(landed: Landed) -> None:
    landed.dead.delete("partition = 0 and offset = 107")
    assert missing(landed.verify()) == [(0, (Range(107, 108),))]


def test_a_dead_letter_table_that_was_dropped_is_found(landed: Landed) -> None:
    landed.catalog.drop_table(landed.pipeline.table.dead_letters)
    found = landed.verify()
    assert Flaw.DECISION_LOST in flaws(found)
    assert len(missing(found)) == 2


def test_a_file_that_is_no_data_file_any_more_is_found(landed: Landed) -> None:
    landed.paths()[0].write_bytes(b"no parquet")
    assert flaws(landed.verify()) == {Flaw.FILE_ALTERED, Flaw.FILE_UNREADABLE, Flaw.MISSING}


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_removed_snapshot_file_is_found(landed: Landed, which: int) -> None:
    path(landed.table.metadata.snapshots[which].manifest_list).unlink()
    found = landed.verify()
    assert found.exit_code == 1
    assert Flaw.MANIFEST_LOST in flaws(found)


def test_a_removed_manifest_is_found(landed: Landed) -> None:
    snapshot = landed.table.current_snapshot()
    assert snapshot is not None
    path(snapshot.manifests(landed.table.io)[0].manifest_path).unlink()
    assert flaws(landed.verify()) == {Flaw.MANIFEST_LOST, Flaw.MISSING}


def test_a_metadata_file_that_is_gone_leaves_nothing_to_check(landed: Landed) -> None:
    path(landed.table.metadata_location).unlink()
    with pytest.raises(CatalogUnavailable, match="metadata file that does not exist"):
        landed.verify()


# ── Doubled, misplaced ──────────────────────────────────────────────────────────────────────────
def test_a_row_doubled_within_a_file_is_found(landed: Landed) -> None:
    places = [(0, o) for o in range(200, 210)]
    landed.commit({0: 210, 1: 60}, Counts(10, 11), {}, landed.files([*places, (0, 205)]))
    found = landed.verify()
    assert {(f.flaw, f.ranges) for f in found.findings if f.partition == 0} == {(Flaw.DOUBLED, (Range(205, 206),))}


def test_a_batch_doubled_whole_is_found_from_manifests_alone(landed: Landed) -> None:
    again = landed.files([(0, o) for o in range(100)])
    landed.append(landed.pipeline.table.identifier, again, {}, tag=False)
    (finding,) = landed.verify().findings
    assert (finding.flaw, finding.ranges, finding.count) == (Flaw.DOUBLED, (Range(0, 100),), 100)


def test_a_doubled_row_does_not_make_up_for_a_missing_one(landed: Landed) -> None:
    landed.table.delete("_kafka_partition = 0 and _kafka_offset = 20")
    landed.append(landed.pipeline.table.identifier, landed.files([(0, 42)]), {}, tag=False)
    found = landed.verify()
    assert found.partitions[0].adds_up
    assert flaws(found) == {Flaw.DOUBLED, Flaw.MISSING}


def test_a_doubled_dead_letter_is_found(landed: Landed) -> None:
    landed.append(landed.pipeline.table.dead_letters, landed.dead_files({(0, 107): b""}), {}, tag=False)
    assert flaws(landed.verify()) == {Flaw.DOUBLED}


def test_a_record_that_is_row_and_dead_letter_is_found(landed: Landed) -> None:
    landed.append(landed.pipeline.table.dead_letters, landed.dead_files({(0, 42): b""}), {}, tag=False)
    (finding,) = landed.verify().findings
    assert (finding.flaw, finding.partition, finding.ranges) == (Flaw.IN_BOTH, 0, (Range(42, 43),))


def test_a_record_that_was_counted_as_skipped_and_landed_is_found(landed: Landed) -> None:
    places = [(0, o) for o in range(200, 210)]
    counts = Counts(10, 10, {}, {"tombstone": 1}, {0: 1})
    landed.commit({0: 210, 1: 60}, counts, {}, landed.files(places))
    assert flaws(landed.verify()) == {Flaw.EXCESS, Flaw.MISCOUNTED}


# ── The ledger ──────────────────────────────────────────────────────────────────────────────────
def test_a_hole_in_the_chain_is_found(landed: Landed) -> None:
    landed.held[0] = 205
    landed.land({0: 210, 1: 60})
    found = landed.verify()
    assert flaws(found) == {Flaw.HOLE, Flaw.MISSING}
    assert missing(found) == [(0, (Range(200, 205),))]


def test_a_snapshot_between_two_commits_is_no_hole(landed: Landed) -> None:
    landed.append(landed.pipeline.table.identifier, [], {}, tag=False)
    landed.land({0: 210, 1: 60})
    assert landed.verify().outcome is Outcome.PROVEN


def test_totals_that_are_not_carried_on_are_found(landed: Landed) -> None:
    landed.totals = Totals({0: Total(100), 1: Total(0)})
    landed.land({0: 210, 1: 60})
    assert Flaw.MISCOUNTED in flaws(landed.verify())


def test_a_commit_that_wrote_other_rows_than_it_counts_is_found(landed: Landed) -> None:
    landed.commit({0: 210, 1: 60}, Counts(10, 9, {"too_short": 1}), {}, landed.files([(0, o) for o in range(200, 210)]))
    assert flaws(landed.verify()) == {Flaw.MISCOUNTED}


def test_a_rollback_of_the_dead_letter_table_is_found(landed: Landed) -> None:
    before = landed.dead.current_snapshot()
    landed.land({0: 210, 1: 70}, rejected=[(0, 203)])
    assert before is not None
    landed.dead.manage_snapshots().rollback_to_snapshot(before.snapshot_id).commit()
    assert {finding.flaw for finding in landed.verify().findings} == {Flaw.ROLLED_BACK, Flaw.MISSING}


def test_a_rollback_by_hand_is_found(landed: Landed) -> None:
    before = landed.table.metadata.snapshots[-2].snapshot_id
    landed.table.manage_snapshots().rollback_to_snapshot(before).commit()
    found = landed.verify()
    assert Flaw.ROLLED_BACK in flaws(found)
    assert found.exit_code == 1


def test_a_lost_tag_is_found(landed: Landed) -> None:
    landed.table.manage_snapshots().remove_tag(ledger.tag("orders")).commit()
    assert flaws(landed.verify()) == {Flaw.UNTAGGED}


def test_figures_survive_the_snapshots_they_were_made_of(tmp_path: Path) -> None:
    lake = Landed(tmp_path)
    lake.land({0: 100, 1: 50}, skipped=[(0, 5)], gaps=[(1, 9)])
    for end in range(110, 150, 10):
        lake.land({0: end, 1: 50})
    lake.expire(keep=2)
    found = lake.verify()
    assert (found.outcome, found.commits) == (Outcome.PROVEN, 2)
    assert [(one.read, one.skipped, one.gaps) for one in found.partitions] == [(140, 1, 0), (50, 0, 1)]


def test_a_ledger_from_before_there_were_totals_is_summed_up(tmp_path: Path) -> None:
    lake = Landed(tmp_path)
    for table in (lake,):
        table.totals = None
    lake.land({0: 100, 1: 50}, skipped=[(0, 5)])
    lake.land({0: 110, 1: 50})
    assert lake.verify().outcome is Outcome.PROVEN


def test_without_totals_and_beginning_nothing_can_be_proven(landed: Landed) -> None:
    landed.totals = None
    landed.land({0: 210, 1: 60})
    landed.expire(keep=1)
    found = landed.verify()
    assert (found.outcome, found.exit_code, flaws(found)) == (Outcome.UNCHECKED, 5, {Flaw.NO_TOTALS})


def test_a_changelog_and_a_state_that_begin_late_are_said_to_be_incomplete(landed: Landed) -> None:
    for write, what in ((Changelog(), "history"), (Upsert(), "state")):
        for start in (Latest(), At(datetime(2026, 1, 2, tzinfo=UTC)), declaration.Offsets({0: 5})):
            landed.pipeline = replace(landed.pipeline, write=write, start=start)
            note = f"the table is not the complete {what}: it begins at {start.kind}, later than older keys"
            assert note in landed.verify().notes


def test_a_contradiction_outweighs_what_could_not_be_known() -> None:
    unknown, hole = (Finding(flaw=flaw, where="t", what="w") for flaw in (Flaw.NO_TOTALS, Flaw.HOLE))
    assert [worst(of) for of in ((), (unknown,), (unknown, hole))] == [
        *(Outcome.PROVEN, Outcome.UNCHECKED, Outcome.NOT_PROVEN)
    ]


def test_a_table_that_does_not_exist_cannot_be_checked(landed: Landed) -> None:
    landed.catalog.drop_table(landed.pipeline.table.identifier)
    found = landed.verify()
    assert (found.exit_code, flaws(found)) == (5, {Flaw.NO_TABLE})


def test_a_table_that_frazil_did_not_fill_cannot_be_checked(landed: Landed) -> None:
    identifier = landed.pipeline.table.identifier
    schema = landed.table.schema()
    landed.catalog.drop_table(identifier)
    landed.catalog.create_table(identifier, schema)
    assert flaws(landed.verify()) == {Flaw.NO_LEDGER}


# ── Decisions ───────────────────────────────────────────────────────────────────────────────────
def test_an_unfinished_decision_is_told_as_such_and_is_no_loss(landed: Landed) -> None:
    landed.land({0: 210, 1: 60}, rejected=[(0, 203), (0, 204)], finish=False)
    found = landed.verify()
    assert (found.exit_code, flaws(found)) == (1, {Flaw.UNFINISHED})
    assert found.findings[0].count == 2
    assert found.partitions[0].pending == 2
    assert found.partitions[0].adds_up


def test_a_decision_whose_file_is_gone_is_a_loss(landed: Landed) -> None:
    landed.land({0: 210, 1: 60}, rejected=[(0, 203)], finish=False)
    for file in path(landed.table.location()).glob("metadata/frazil-side-*.json"):
        file.unlink()
    assert flaws(landed.verify()) == {Flaw.DECISION_LOST, Flaw.MISSING}


def test_a_decided_data_file_that_is_gone_is_a_loss(landed: Landed) -> None:
    before = set(path(landed.dead.location()).glob("data/**/*.parquet"))
    landed.land({0: 210, 1: 60}, rejected=[(0, 203)], finish=False)
    (decided,) = set(path(landed.dead.location()).glob("data/**/*.parquet")) - before
    decided.unlink()
    assert flaws(landed.verify()) == {Flaw.UNFINISHED, Flaw.FILE_LOST, Flaw.MISSING}


def test_a_driver_at_work_does_not_disturb(landed: Landed) -> None:
    """Its next dead letters are there when the second table is loaded, its rows were not when the first was."""
    lake = BusyLake(landed.environment, [lambda: landed.land({0: 210, 1: 60}, rejected=[(0, 203)])])
    found = verify(landed.pipeline, lake, wait=lambda seconds: None)
    assert (found.outcome, found.partitions[0].end) == (Outcome.PROVEN, 210)


def test_a_driver_that_commits_before_each_second_load_does_not_disturb(landed: Landed) -> None:
    def land() -> None:
        end = landed.held[0] + 10
        landed.land({0: end, 1: 60}, rejected=[(0, end - 7)])

    lake = BusyLake(landed.environment, itertools.cycle([land, lambda: None]))
    found = verify(landed.pipeline, lake, wait=lambda seconds: None)
    assert found.outcome is Outcome.PROVEN, found.findings
    assert found.partitions[0].end < landed.held[0]


def test_a_decision_that_is_finished_a_moment_later_is_none_that_is_open(landed: Landed) -> None:
    landed.land({0: 210, 1: 60}, rejected=[(0, 203)], finish=False)

    def finish(seconds: float) -> None:
        table = landed.lake.table("shop.orders")
        assert table is not None
        summary = {key: value for key, value in table.commits("orders")[0].summary.items() if key.startswith("frazil.")}
        summary[ledger.TABLE] = str(landed.table.metadata.table_uuid)
        landed.append(landed.pipeline.table.dead_letters, landed.dead_files({(0, 203): b""}), summary)

    assert verify(landed.pipeline, landed.lake, wait=finish).outcome is Outcome.PROVEN


# ── Operators' decisions ────────────────────────────────────────────────────────────────────────
def test_a_gap_that_an_operator_accepted_is_explained(landed: Landed) -> None:
    accepted = '{"event":"offsets-lost","reason":"retention"}'
    landed.commit({0: 500}, Counts(gaps={0: 300}), {}, accepted=accepted)
    landed.land({0: 510, 1: 60})
    found = landed.verify()
    assert (found.outcome, found.partitions[0].gaps) == (Outcome.PROVEN, 300)
    assert any("offsets-lost" in note for note in found.notes)


def test_a_topic_created_again_has_its_offsets_once_more(landed: Landed) -> None:
    landed.commit({0: 0}, Counts(), {}, accepted="{}", topic_id="T2")
    landed.land({0: 120})
    found = landed.verify()
    assert found.outcome is Outcome.PROVEN
    first, second = found.partitions
    assert (first.end, first.read, first.landed) == (120, 320, 319)
    assert (second.read, second.landed) == (60, 59)


def test_a_topic_created_again_while_it_is_verified_is_no_fault(landed: Landed) -> None:
    """The dead letter is of the second topic; the table that was loaded first has a row at this offset of the first one."""

    def recreate() -> None:
        landed.commit({0: 0}, Counts(), {}, accepted="{}", topic_id="T2")
        landed.land({0: 120}, rejected=[(0, 50)])

    found = verify(landed.pipeline, BusyLake(landed.environment, [recreate]), wait=lambda seconds: None)
    assert found.outcome is Outcome.PROVEN, found.findings


def test_what_is_doubled_within_the_topic_created_again_is_found(landed: Landed) -> None:
    landed.commit({0: 0}, Counts(), {}, accepted="{}", topic_id="T2")
    landed.land({0: 120})
    landed.append(landed.pipeline.table.identifier, landed.files([(0, 50), (0, 150)]), {}, tag=False)
    found = landed.verify()
    assert flaws(found) == {Flaw.DOUBLED}
    assert sum(f.count or 0 for f in found.findings) == 2


def test_a_topic_truncated_and_gone_on_from_its_end_has_offsets_once_more(landed: Landed) -> None:
    landed.commit({0: 150}, Counts(), {}, accepted="{}")
    landed.land({0: 260, 1: 60})
    found = landed.verify()
    assert (found.outcome, found.partitions[0].read) == (Outcome.PROVEN, 310)


def test_what_expires_while_it_is_verified_is_no_loss(landed: Landed) -> None:
    """Expiry takes the metadata of old snapshots with it, after they were loaded and before they are looked for."""
    old = landed.table.metadata.snapshots[0].manifest_list

    def expire() -> None:
        landed.expire(keep=1)
        path(old).unlink()

    found = verify(landed.pipeline, BusyLake(landed.environment, [expire]), wait=lambda seconds: None)
    assert (found.outcome, found.findings) == (Outcome.PROVEN, ())
