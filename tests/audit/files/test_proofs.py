"""What a verification remembers is used as long as the files are the same, and never otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frazil.audit import verify
from frazil.audit.files import count
from frazil.audit.files.proofs import ProofFolder
from frazil.audit.finding import Depth, Flaw, Outcome, Range
from frazil.audit.verification import Verification
from frazil.lake.ledger.next_offsets import canonical
from frazil.lake.ledger.totals import Counts
from tests.audit.audited_table import Landed


class Proven:
    """A landed pipeline, and verifications of it that remember."""

    def __init__(self, lake: Landed, folder: Path) -> None:
        self.lake, self.folder = lake, folder

    def verify(self, **how: bool) -> Verification:
        """Verify, and hold the answer against one that remembers nothing."""
        remembering = verify.verify(
            self.lake.pipeline, self.lake.lake, proofs=ProofFolder(self.folder), wait=lambda seconds: None, **how
        )
        forgetful = self.lake.verify(deep=how.get("deep", False))
        assert (remembering.outcome, remembering.findings) == (forgetful.outcome, forgetful.findings)
        assert remembering.partitions == forgetful.partitions
        return remembering

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.json"))


def opened(found: Verification) -> int:
    return sum(read.files_by_scan for read in found.reads)


def rows(found: Verification) -> int:
    return sum(read.rows_by_scan for read in found.reads)


@pytest.fixture
def proven(landed: Landed, tmp_path: Path) -> Proven:
    proven = Proven(landed, tmp_path / "proofs")
    assert opened(proven.verify()) == 3
    return proven


def test_an_unchanged_table_is_proven_without_opening_a_data_file(proven: Proven) -> None:
    found = proven.verify()
    assert (found.outcome, opened(found), found.estimate.files) == (Outcome.PROVEN, 0, 0)
    assert [read.rows_remembered for read in found.reads] == [258, 2]


def test_deep_and_fresh_use_no_proof(proven: Proven) -> None:
    assert opened(proven.verify(fresh=True)) == 3
    assert opened(proven.verify(deep=True)) == 5


def test_after_more_commits_only_their_files_are_read(proven: Proven) -> None:
    for end in (300, 400, 500):
        proven.lake.land({0: end, 1: end - 200}, rejected=[(0, end - 10)])
    found = proven.verify()
    # 99 rows of each batch; partition 1 is known from manifests.
    assert (found.outcome, rows(found)) == (Outcome.PROVEN, 3 * 99)
    assert opened(proven.verify()) == 0


def rolled_back(lake: Landed) -> None:
    lake.table.manage_snapshots().rollback_to_snapshot(lake.table.metadata.snapshots[1].snapshot_id).commit()


def grown(lake: Landed) -> None:
    file = lake.paths()[0]
    file.write_bytes(file.read_bytes() + b"x")


def test_a_row_deleted_by_hand_after_a_proof_is_found(proven: Proven) -> None:
    proven.lake.table.delete("_kafka_partition = 0 and _kafka_offset = 20")
    found = proven.verify()
    assert [(f.flaw, f.ranges) for f in found.findings] == [(Flaw.MISSING, (Range(20, 21),))]


@pytest.mark.parametrize(
    ("change", "flaw"),
    [
        (lambda lake: lake.append("shop.orders", lake.files([(0, 150)]), {}, tag=False), Flaw.DOUBLED),
        (lambda lake: lake.dead.delete("partition = 0 and offset = 107"), Flaw.MISSING),
        (lambda lake: lake.paths()[-1].unlink(), Flaw.FILE_LOST),
        (rolled_back, Flaw.ROLLED_BACK),
        (grown, Flaw.FILE_ALTERED),
    ],
    ids=["doubled row", "lost dead letter", "lost file", "rollback", "file of another size"],
)
def test_a_change_after_a_proof_is_found_each_time(
    proven: Proven, change: Callable[[Landed], object], flaw: Flaw
) -> None:
    change(proven.lake)
    for _ in range(2):
        assert flaw in {f.flaw for f in proven.verify().findings}


def test_a_compaction_after_a_proof_is_read(proven: Proven) -> None:
    lake = proven.lake
    places = [(0, o) for o in range(200) if o != 107] + [(1, o) for o in range(60) if o != 53]
    with lake.table.transaction() as change:
        change.delete("order_id >= 0")
        with change.update_snapshot().fast_append() as update:
            for file in lake.files(places):
                update.append_data_file(file)
    found = proven.verify()
    assert (found.outcome, rows(found)) == (Outcome.PROVEN, 260)


def test_another_table_does_not_use_the_proof(proven: Proven, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Proven(Landed(tmp_path / "other"), proven.folder)
    other.lake.land({0: 100, 1: 50})
    other.lake.land({0: 200, 1: 60}, rejected=[(0, 107), (1, 53)])
    assert opened(other.verify()) == 3
    assert len(proven.files()) == 2


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *((("key", name), "other") for name in ("pipeline", "topic", "rule", "tables")),
        (("proofs", 0, "parts", 0, 3), 200),  # one row more than it says before and after
        (("proofs", 0, "parts", 0), [0, 0, 210, 209, 1, 0, []]),  # offsets that were never read
    ],
    ids=str,
)
def test_a_proof_that_somebody_edited_is_not_used(proven: Proven, path: tuple[Any, ...], value: Any) -> None:
    (file,) = proven.files()
    body = place = json.loads(file.read_bytes())["body"]
    for name in path[:-1]:
        place = place[name]
    assert place[path[-1]] != value
    place[path[-1]] = value
    write(file, body)
    assert opened(proven.verify()) == 3


def test_a_damaged_proof_is_not_used(proven: Proven) -> None:
    (file,) = proven.files()
    whole = file.read_bytes()
    for damaged in (
        b"",
        b"no json",
        b"[]",
        whole[:-20],
        whole.replace(b"[0,0,200,199,1,0,[]]", b"[0,0,200,198,2,0,[]]"),
    ):
        assert damaged != whole
        file.write_bytes(damaged)
        assert opened(proven.verify()) == 3


def test_a_folder_that_cannot_be_written_only_costs_time(landed: Landed, tmp_path: Path) -> None:
    (tmp_path / "proofs").write_text("a file, where the folder would be")
    proven = Proven(landed, tmp_path / "proofs")
    assert (opened(proven.verify()), opened(proven.verify())) == (3, 3)


def test_only_the_owner_may_read_a_proof(proven: Proven) -> None:
    (file,) = proven.files()
    assert (file.stat().st_mode & 0o777, proven.folder.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.long
def test_offsets_that_came_again_are_counted_each_time(proven: Proven) -> None:
    """A proof knows one life of an offset: after an operator's decision there are two."""
    proven.lake.commit({0: 150}, Counts(), {}, accepted="{}")
    proven.lake.land({0: 260, 1: 60})
    assert proven.verify().outcome is Outcome.PROVEN
    assert proven.verify().outcome is Outcome.PROVEN
    lost = proven.lake.files([(0, 170)])
    proven.lake.append("shop.orders", lost, {}, tag=False)
    assert {f.flaw for f in proven.verify().findings} == {Flaw.DOUBLED}


def test_a_decision_that_is_open_is_counted_each_time(proven: Proven) -> None:
    proven.lake.land({0: 210, 1: 60}, rejected=[(0, 203)], finish=False)
    for _ in range(2):
        found = proven.verify()
        assert [f.flaw for f in found.findings] == [Flaw.UNFINISHED]
        assert found.partitions[0].pending == 1


@pytest.mark.long
def test_many_proofs_become_few(proven: Proven, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count, "PROOFS", 3)
    for end in range(210, 260, 10):
        proven.lake.land({0: end, 1: 60})
        assert proven.verify().outcome is Outcome.PROVEN
    (file,) = proven.files()
    assert len(json.loads(file.read_bytes())["body"]["proofs"]) == 3
    assert opened(proven.verify()) == 0


def test_small_proofs_survive_a_change_elsewhere(proven: Proven, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count, "SEGMENT", 64)
    proven.verify(fresh=True)
    proven.lake.table.delete("_kafka_partition = 0 and _kafka_offset = 150", snapshot_properties={"frazil.run": "own"})
    found = proven.verify()
    assert [f.flaw for f in found.findings] == [Flaw.MISSING]
    assert rows(found) < 258 / 2


def test_keys_are_read_once_after_another_engines_commit(proven: Proven) -> None:
    """It added a file whose manifest says that it has each offset between its bounds: no manifest of another engine proves that."""
    lake = proven.lake
    lake.land({0: 300, 1: 60})
    assert rows(proven.verify()) == 0
    lake.append("shop.orders", lake.files([(0, 3)], topic="payments"), {}, tag=False)
    assert rows(proven.verify()) > 0
    assert (proven.verify().depth, rows(proven.verify())) == (Depth.COUNTED, 0)
    lake.table.delete("_kafka_partition = 0 and _kafka_offset >= 297")
    assert proven.verify().findings
    lake.append("shop.orders", lake.files([(0, 297), (0, 297), (0, 299)]), {}, tag=False)
    for _ in range(2):
        assert {one.flaw for one in proven.verify().findings} == {Flaw.DOUBLED, Flaw.MISSING}


def write(file: Path, body: dict[str, Any]) -> None:
    """Write a proof as one who forges it would: with a sum that fits, under the name of its key."""
    from frazil.audit.files.proofs import _sum

    file.write_text(canonical({"body": body, "sha256": _sum(body)}))


def skewed(tmp_path: Path) -> Proven:
    """Partitions of very different lengths in shared files, as the ingest writes small batches of many partitions."""
    (tmp_path / "skewed").mkdir()
    proven = Proven(Landed(tmp_path / "skewed", partitions=4), tmp_path / "skewed-proofs")
    proven.lake.land({0: 5_000, 1: 50, 2: 10, 3: 700}, per_file=4)
    assert rows(proven.verify()) == 5_760
    return proven


def test_new_files_of_many_partitions_leave_older_proofs_alone(tmp_path: Path) -> None:
    """Their bounds span all offsets in between; the commits that added them say more."""
    proven = skewed(tmp_path)
    for more in (10, 20):
        proven.lake.land({0: 5_000 + more, 1: 50 + more, 2: 10 + more, 3: 700 + more}, per_file=4)
        assert rows(proven.verify()) == 40
    assert opened(proven.verify()) == 0


@pytest.mark.long
def test_what_a_commit_says_of_its_files_outlives_its_snapshot(tmp_path: Path) -> None:
    proven = skewed(tmp_path)
    for more in range(10, 50, 10):
        proven.lake.land({0: 5_000 + more, 1: 50 + more, 2: 10 + more, 3: 700 + more}, per_file=4)
        proven.verify()
    proven.lake.expire(keep=2)
    assert opened(proven.verify()) == 0


def test_a_row_beyond_what_its_commit_says_is_found(tmp_path: Path) -> None:
    proven = skewed(tmp_path)
    places = [(p, at + o) for p, at in enumerate((5_000, 50, 10, 700)) for o in range(10)]
    files = proven.lake.files([*places[1:], (0, 42)])
    proven.lake.commit({0: 5_010, 1: 60, 2: 20, 3: 710}, Counts(40, 40), {}, files)
    assert {Flaw.FILE_ALTERED, Flaw.MISSING} <= {f.flaw for f in proven.verify(fresh=True).findings}
