"""Verifying needs memory by the window, and not by the rows, files or partitions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from frazil.audit.files import count
from frazil.audit.files.window import Tally, Window
from frazil.audit.files.windows import Stretch
from frazil.audit.finding import Flaw, Outcome, Range
from tests.audit.audited_table import Landed
from tests.audit.interleaved import fill

MEGABYTE = 1_000_000


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bits of each window, as they are when it is done."""
    sizes: list[int] = []

    class Measured(Window):
        def tallies(self) -> Iterator[list[tuple[Stretch, Tally]]]:
            sizes.append(sum(self.placement.size * len(layers.bitmaps) for layers in self._layers.values()))
            yield from super().tallies()

    monkeypatch.setattr(count, "Window", Measured)
    return sizes


def test_a_window_is_as_small_as_it_is_told(tmp_path: Path, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Landed(tmp_path, partitions=5)
    fill(lake, 100_000, partitions=5, buckets=16, rows_of_a_group=500)
    lake.land({0: 20_500}, rejected=[(0, 20_100)])
    whole = lake.verify()
    monkeypatch.setattr(count, "WINDOW", 10_000)
    monkeypatch.setattr(count, "SEGMENT", 3_000)
    sizes.clear()
    found = lake.verify()
    assert (found.outcome, found.partitions, found.reads) == (Outcome.PROVEN, whole.partitions, whole.reads)
    # A bit for each offset, for rows and for dead letters; the edges of five partitions are whole words.
    assert len(sizes) == 11
    assert max(sizes) <= 2 * (10_000 + 5 * 128)


def test_what_is_wrong_is_the_same_in_small_windows(
    tmp_path: Path, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Landed(tmp_path, partitions=3)
    fill(lake, 30_000, partitions=3, buckets=4, rows_of_a_group=200)
    lake.table.delete("_kafka_offset = 4000 or (_kafka_partition = 2 and _kafka_offset >= 9990)")
    lake.append("shop.orders", lake.files([(1, 77), (1, 77), (2, 20_000), (9, 9)]), {}, tag=False)
    whole = lake.verify()
    monkeypatch.setattr(count, "WINDOW", 2_000)
    monkeypatch.setattr(count, "SEGMENT", 640)
    found = lake.verify()
    assert (found.findings, found.partitions) == (whole.findings, whole.partitions)
    assert {(f.flaw, f.partition, f.count) for f in found.findings} == {
        (Flaw.MISSING, 0, 1), (Flaw.MISSING, 1, 1), (Flaw.MISSING, 2, 11),
        (Flaw.DOUBLED, 1, 2), (Flaw.OUT_OF_RANGE, 2, 1), (Flaw.OUT_OF_RANGE, 9, 1),
    }  # fmt: skip
    assert (Range(4000, 4001), Range(9990, 10_000)) in {finding.ranges for finding in found.findings}


def test_row_groups_outside_of_a_window_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Landed(tmp_path, partitions=1)
    fill(lake, 64_000, partitions=1, buckets=2, rows_of_a_group=1_000)
    from frazil.lake.read import row_groups

    read: list[Any] = []
    real = row_groups._Parquet.read

    def counted(self: Any, group: Any) -> Any:
        read.append(group)
        return real(self, group)

    monkeypatch.setattr(row_groups._Parquet, "read", counted)
    monkeypatch.setattr(count, "WINDOW", 8_000)
    assert lake.verify().outcome is Outcome.PROVEN
    assert len(read) <= 66 + 2 * 7  # a group at the edge of two windows is read in both


@pytest.mark.long
@pytest.mark.parametrize("rows", [16_000_000, 64_000_000])
def test_millions_of_interleaved_rows_need_little_memory(tmp_path: Path, rows: int) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "tests.audit.interleaved", str(tmp_path / "lake"), str(rows)],
        capture_output=True,
        text=True,
        check=True,
    )
    cost = json.loads(made.stdout)
    assert (cost["exit_code"], cost["rows"]) == (0, rows // 12 * 12)
    assert cost["grew_by_bytes"] < 500 * MEGABYTE, cost
