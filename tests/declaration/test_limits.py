import pytest

from frazil.declaration import Limits
from tests.declaration.problems_of import problems_of


def test_batches_start_small_and_are_bounded_in_rows_and_bytes():
    assert Limits() == Limits(target_seconds=10, first_rows=20_000, max_rows=1_000_000, max_bytes=1024**3)


@pytest.mark.parametrize(
    ("values", "paths"),
    [
        ({"target_seconds": 0}, ["limits.target_seconds"]),
        ({"target_seconds": 0.5}, ["limits.target_seconds"]),
        ({"max_bytes": 0}, ["limits.max_bytes"]),
        ({"max_rows": 10}, ["limits.first_rows"]),
        ({"first_rows": 0, "max_rows": 2**63}, ["limits.first_rows", "limits.max_rows"]),
    ],
)
def test_bounds_that_admit_no_batch_are_refused(values, paths):
    assert list(problems_of(lambda: Limits(**values))) == paths
