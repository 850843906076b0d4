"""The metadata of 1,000 partitions stay small, whatever the offsets are."""

import pytest

from bench.metadata import CASES, Case, megabytes, summaries
from frazil.lake.ledger import entry as ledger

SEED = 1


@pytest.mark.parametrize("case", [case for case in CASES if case.gaps is None], ids=lambda case: str(case.says))
def test_100_snapshots_of_1000_partitions_take_at_most_a_megabyte(case: Case) -> None:
    made = [ledger.stored(summary) for summary in summaries(case, 1_000, 100, seed=SEED)]
    assert megabytes(made, seed=SEED) <= 1.0


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.says))
def test_100_snapshots_of_300_partitions_take_at_most_a_megabyte(case: Case) -> None:
    made = [ledger.stored(summary) for summary in summaries(case, 300, 100, seed=SEED)]
    assert megabytes(made, seed=SEED) <= 1.0
