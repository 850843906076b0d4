"""How much is fetched: consumers are kept between batches, and each keeps a fetch."""

import pytest

from frazil.ingest.batch.read import FETCHED_BYTES, fetch_bytes


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [(0, 8 << 20), (64, 8 << 20), (65, 4 << 20), (1_000, 512 << 10), (1_024, 512 << 10), (10_000, 256 << 10)],
)
def test_the_more_partitions_a_driver_reads_the_less_it_fetches_of_each(partitions: int, expected: int) -> None:
    assert fetch_bytes(partitions) == expected


def test_what_the_kept_consumers_hold_is_bounded() -> None:
    assert all(fetch_bytes(n) * n <= FETCHED_BYTES for n in (1, 12, 600, 2_048))
