"""What somebody could do to the tables so that a loss looks like a proof. Each is found, or is named in the docs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.types import LongType

from frazil.audit.files import count
from frazil.audit.finding import Flaw, Outcome, Range
from frazil.audit.verification import Verification
from frazil.errors import CatalogUnavailable
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Counts
from tests.audit.audited_table import Landed

MAIN = "shop.orders"


def flaws(found: Verification) -> set[Flaw]:
    return {finding.flaw for finding in found.findings}


def places(found: Verification) -> set[tuple[Flaw, int | None, tuple[Range, ...]]]:
    return {(finding.flaw, finding.partition, finding.ranges) for finding in found.findings}


def edited(file: Path, edit: Callable[[pa.Table], pa.Table]) -> None:
    """Change the rows of a data file behind its manifest."""
    pq.write_table(edit(pq.read_table(file)), file)


def column(table: pa.Table, name: str, values: list[Any]) -> pa.Table:
    index = table.schema.get_field_index(name)
    field = table.schema.field(index)
    return table.set_column(index, field, pa.array(values, field.type))


# ── Rows ────────────────────────────────────────────────────────────────────────────────────────
def test_a_row_moved_to_another_partition_is_found(landed: Landed) -> None:
    landed.table.delete("_kafka_partition = 0 and _kafka_offset = 42")
    landed.append(MAIN, landed.files([(1, 42)]), {}, tag=False)
    assert places(landed.verify()) == {(Flaw.MISSING, 0, (Range(42, 43),)), (Flaw.DOUBLED, 1, (Range(42, 43),))}


def test_two_rows_that_swap_their_partitions_are_as_good_as_before(landed: Landed) -> None:
    """No one can see that: a row says itself which record it is."""
    landed.table.delete("_kafka_offset = 42")
    landed.append(MAIN, landed.files([(1, 42), (0, 42)]), {}, tag=False)
    assert landed.verify().outcome is Outcome.PROVEN


@pytest.mark.parametrize("deep", [False, True])
def test_a_row_whose_offset_is_null_is_found(landed: Landed, *, deep: bool) -> None:
    landed.table.delete("_kafka_partition = 0 and _kafka_offset = 42")
    rows = [landed.row(0, None), landed.row(0, 5_000)]
    landed.append(MAIN, landed.written(landed.table, rows), {}, tag=False)
    assert flaws(landed.verify(deep=deep)) == {Flaw.UNPLACED, Flaw.OUT_OF_RANGE, Flaw.MISSING}


@pytest.mark.parametrize("deep", [False, True])
def test_a_row_whose_topic_is_null_is_no_row_of_the_topic(landed: Landed, *, deep: bool) -> None:
    landed.table.delete("_kafka_partition = 0 and _kafka_offset = 42")
    row = {**landed.row(0, 42), "_kafka_topic": None}
    landed.append(MAIN, landed.written(landed.table, [row]), {}, tag=False)
    assert flaws(landed.verify(deep=deep)) == {Flaw.UNPLACED, Flaw.MISSING}


def test_a_row_doubled_many_times_is_counted_each_time(landed: Landed) -> None:
    landed.append(MAIN, landed.files([(0, 42)] * 7 + [(0, 43)]), {}, tag=False)
    (finding,) = landed.verify().findings
    assert (finding.flaw, finding.count, finding.ranges) == (Flaw.DOUBLED, 8, (Range(42, 44),))


@pytest.mark.parametrize("deep", [False, True])
def test_rows_with_offsets_that_no_topic_has_are_found(landed: Landed, *, deep: bool) -> None:
    far = [(0, 2**62), (7, 3), (2**31 - 1, 5), (0, -3)]
    landed.append(MAIN, landed.files([*far, (0, 42)]), {}, tag=False)
    found = landed.verify(deep=deep)
    assert {(f.flaw, f.partition) for f in found.findings} == {
        (Flaw.DOUBLED, 0), (Flaw.OUT_OF_RANGE, 0), (Flaw.OUT_OF_RANGE, 7), (Flaw.OUT_OF_RANGE, 2**31 - 1),
    }  # fmt: skip
    assert (Range(-3, -2), Range(2**62, 2**62 + 1)) in {f.ranges for f in found.findings}


# ── Dead letters ────────────────────────────────────────────────────────────────────────────────
def test_a_dead_letter_of_another_topic_does_not_stand_in_for_a_lost_one(landed: Landed) -> None:
    landed.dead.delete("partition = 0 and offset = 107")
    (row,) = [r for r in landed.dead.scan().to_arrow().to_pylist() if r["partition"] == 1]
    landed.append(
        landed.pipeline.table.dead_letters,
        landed.written(landed.dead, [{**row, "topic": "payments", "partition": 0, "offset": 107}]),
        {},
        tag=False,
    )
    found = landed.verify()
    assert places(found) == {(Flaw.MISSING, 0, (Range(107, 108),))}
    assert found.reads[1].others == 1


def test_a_dead_letter_in_place_of_a_lost_row_is_as_good_as_a_row(landed: Landed) -> None:
    """No one can see that: which records were good is known to the decoder only. The commit's own counts tell."""
    landed.table.delete("_kafka_partition = 0 and _kafka_offset = 42")
    landed.append(landed.pipeline.table.dead_letters, landed.dead_files({(0, 42): b""}), {}, tag=False)
    found = landed.verify()
    assert found.outcome is Outcome.PROVEN
    assert (found.sum_of("landed"), found.sum_of("dead_lettered")) == (257, 3)


# ── Files ───────────────────────────────────────────────────────────────────────────────────────
def test_rows_moved_within_a_file_behind_its_manifest_are_found_by_reading(landed: Landed) -> None:
    """The file's own statistics know its new bounds, and they are held against the manifest's."""
    file = landed.paths()[0]
    edited(file, lambda t: column(t, "_kafka_offset", [o + 1_000 for o in t["_kafka_offset"].to_pylist()]))
    assert {Flaw.FILE_ALTERED, Flaw.OUT_OF_RANGE, Flaw.MISSING} <= flaws(landed.verify(deep=True))


def test_an_offset_doubled_in_place_of_another_is_found_by_reading(landed: Landed) -> None:
    def doubled(table: pa.Table) -> pa.Table:
        offsets = table["_kafka_offset"].to_pylist()
        return column(table, "_kafka_offset", [offsets[1], *offsets[1:-1], offsets[-1]])

    file = landed.paths()[0]
    edited(file, doubled)
    found = landed.verify(deep=True)
    assert {Flaw.DOUBLED, Flaw.MISSING} <= flaws(found)


@pytest.mark.parametrize("window", [64, 1 << 20])
def test_a_row_that_its_manifest_does_not_admit_is_found(
    landed: Landed, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    """Its window would be another one than the file is read for."""
    (file,) = landed.files([(0, 42), (0, 150)])
    field = landed.table.schema().find_field("_kafka_offset").field_id
    file.lower_bounds[field] = file.upper_bounds[field]
    landed.append(MAIN, [file], {}, tag=False)
    monkeypatch.setattr(count, "WINDOW", window)
    assert {Flaw.FILE_ALTERED, Flaw.DOUBLED} <= flaws(landed.verify())


def test_a_file_with_other_types_is_no_data_file(landed: Landed) -> None:
    def texts(table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index("_kafka_offset")
        field = table.schema.field(index).with_type(pa.string())
        return table.set_column(index, field, table["_kafka_offset"].cast(pa.string()))

    edited(landed.paths()[0], texts)
    assert {Flaw.FILE_UNREADABLE, Flaw.MISSING} <= flaws(landed.verify())


@pytest.mark.parametrize("where", ["offsets", "footer"])
def test_a_damaged_file_is_found_and_is_no_outage(landed: Landed, where: str) -> None:
    """As many bytes as before: only reading shows it."""
    file = landed.paths()[-1]
    metadata = pq.ParquetFile(file).metadata
    chunks = [metadata.row_group(0).column(i) for i in range(metadata.num_columns)]
    (offsets,) = [chunk for chunk in chunks if chunk.path_in_schema == "_kafka_offset"]
    at = offsets.dictionary_page_offset if where == "offsets" else file.stat().st_size - 40
    whole = bytearray(file.read_bytes())
    whole[at : at + 24] = b"\xff" * 24
    file.write_bytes(bytes(whole))
    found = landed.verify(deep=True)
    assert flaws(found) == {Flaw.FILE_UNREADABLE, Flaw.MISSING}


def test_an_outage_while_reading_is_no_finding(landed: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, group: object) -> None:
        raise OSError("When reading key 'lake/corrupt_thrift/x.parquet' in bucket 'b': AWS Error NETWORK_CONNECTION")

    monkeypatch.setattr("frazil.lake.read.row_groups._Parquet.read", fail)
    with pytest.raises(CatalogUnavailable, match="NETWORK_CONNECTION"):
        landed.verify()


def test_files_added_by_hand_count_as_rows(landed: Landed, tmp_path: Path) -> None:
    """A file of the lost rows, without Iceberg's ids, mends a table; one of other rows does not."""
    lost = landed.table.scan("_kafka_partition = 0 and _kafka_offset = 42").to_arrow()
    landed.table.delete("_kafka_partition = 0 and _kafka_offset = 42")
    file = tmp_path / "by-hand.parquet"
    pq.write_table(lost.replace_schema_metadata(None), file)
    landed.table.add_files([f"file://{file}"])
    assert landed.verify().outcome is Outcome.PROVEN
    landed.table.add_files([f"file://{file}"], check_duplicate_files=False)
    assert flaws(landed.verify()) == {Flaw.DOUBLED}


def test_a_column_made_again_has_no_offsets(landed: Landed) -> None:
    with landed.table.update_schema(allow_incompatible_changes=True) as change:
        change.delete_column("_kafka_offset")
    with landed.table.update_schema() as change:
        change.add_column("_kafka_offset", LongType())
    found = landed.verify()
    assert found.exit_code == 1
    assert Flaw.MISSING in flaws(found)


def test_a_table_whose_partitioning_changed_is_proven(landed: Landed) -> None:
    with landed.table.update_spec() as change:
        change.add_identity("_kafka_partition")
    landed.land({0: 300, 1: 90}, rejected=[(0, 250)])
    assert landed.verify().outcome is Outcome.PROVEN
    landed.table.delete("_kafka_partition = 1 and _kafka_offset = 70")
    assert places(landed.verify()) == {(Flaw.MISSING, 1, (Range(70, 71),))}


# ── The ledger ──────────────────────────────────────────────────────────────────────────────────
def second_batch(document: dict[str, Any]) -> dict[str, Any]:
    (summary,) = (s["summary"] for s in document["snapshots"] if '"read":110' in s["summary"].get(ledger.COUNTS, ""))
    found: dict[str, Any] = summary
    return found


def test_gaps_edited_into_a_commit_do_not_hide_a_lost_row(landed: Landed) -> None:
    landed.table.delete("_kafka_partition = 0 and _kafka_offset = 142")

    def gap(document: dict[str, Any]) -> None:
        summary = second_batch(document)
        counts = Counts.parse(summary[ledger.COUNTS])
        summary[ledger.COUNTS] = str(Counts(counts.read, counts.written, counts.rejected, gaps={0: 1}))
        summary[ledger.TOTALS] = summary[ledger.TOTALS].replace('"0":[0,0,0]', '"0":[0,0,1]')

    landed.edit_metadata(gap)
    found = landed.verify()
    assert [(f.flaw, f.partition) for f in found.findings] == [(Flaw.MISCOUNTED, None)]
    assert "covers 110 offsets, and counts 110 records and 1 gaps" in found.findings[0].what


def test_gaps_counted_in_the_wrong_partition_are_found(tmp_path: Path) -> None:
    lake = Landed(tmp_path)
    places_ = [(p, o) for p in (0, 1) for o in range(50) if (p, o) != (0, 7)]
    lake.commit({0: 50, 1: 50}, Counts(99, 99, gaps={1: 1}), {}, lake.files(places_))
    found = lake.verify()
    assert {(f.flaw, f.partition) for f in found.findings} == {(Flaw.MISSING, 0), (Flaw.EXCESS, 1)}


def test_totals_edited_to_hide_a_lost_row_are_found(landed: Landed) -> None:
    landed.table.delete("_kafka_partition = 0 and _kafka_offset = 42")

    def totals(document: dict[str, Any]) -> None:
        summary = second_batch(document)
        summary[ledger.TOTALS] = summary[ledger.TOTALS].replace('"0":[0,0,0]', '"0":[0,0,1]')

    landed.edit_metadata(totals)
    assert flaws(landed.verify()) == {Flaw.MISCOUNTED}


def test_an_end_edited_to_hide_lost_rows_is_found(landed: Landed) -> None:
    landed.table.delete("_kafka_partition = 0 and _kafka_offset >= 190")

    def end(document: dict[str, Any]) -> None:
        summary = second_batch(document)
        held = Offsets.parse(summary[ledger.END])
        summary[ledger.END] = str(Offsets(held.topic, held.topic_id, {**held.at, 0: 190}))

    landed.edit_metadata(end)
    found = landed.verify()
    assert any("its commit id is not that of its offsets" in f.what for f in found.findings)


def test_a_summary_that_lost_its_counts_is_found(landed: Landed) -> None:
    landed.edit_metadata(lambda document: second_batch(document).pop(ledger.COUNTS))
    assert flaws(landed.verify()) == {Flaw.MISCOUNTED}


def rolled_back(lake: Landed, identifier: str, *, to: int) -> None:
    """Roll a table back by hand, and move its tag too, so that nothing in it looks rolled back."""
    table = lake.catalog.load_table(identifier)
    snapshot = sorted(table.metadata.snapshots, key=lambda s: s.sequence_number or 0)[to]
    table.manage_snapshots().rollback_to_snapshot(snapshot.snapshot_id).commit()
    lake.mark(identifier)


def test_a_table_rolled_back_with_its_tag_is_found_by_its_dead_letters(landed: Landed) -> None:
    rolled_back(landed, MAIN, to=1)
    found = landed.verify()
    assert flaws(found) == {Flaw.SIDE_AHEAD}
    assert any("was rolled back: 1 commits" in note for note in found.notes)


def test_tables_rolled_back_together_are_proven_as_far_as_they_are(landed: Landed) -> None:
    """They are what they were then, and the next run goes on from there. A note says so while the snapshots are kept."""
    landed.land({0: 210, 1: 60}, rejected=[(0, 203)])
    rolled_back(landed, MAIN, to=2)
    rolled_back(landed, landed.pipeline.table.dead_letters, to=0)
    found = landed.verify()
    assert (found.outcome, [one.end for one in found.partitions]) == (Outcome.PROVEN, [200, 60])
    assert any("was rolled back: 1 commits" in note for note in found.notes)


def test_dead_letters_rolled_back_are_found(landed: Landed) -> None:
    landed.land({0: 210, 1: 60}, rejected=[(0, 203)])
    rolled_back(landed, landed.pipeline.table.dead_letters, to=0)
    found = landed.verify()
    assert flaws(found) == {Flaw.DECISION_LOST, Flaw.MISSING}


def test_snapshots_expired_by_hand_hide_no_lost_row(landed: Landed) -> None:
    for end in (210, 220, 230):
        landed.land({0: end, 1: 60})
    landed.table.delete("_kafka_partition = 0 and _kafka_offset = 42")
    landed.expire(keep=2)
    assert places(landed.verify()) == {(Flaw.MISSING, 0, (Range(42, 43),))}
