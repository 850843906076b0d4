"""How many tasks the actions of a maintenance run are divided into."""

from __future__ import annotations

import pytest

from frazil.maintain.run import shuffle_partitions


@pytest.mark.parametrize(("cores", "partitions"), [(1, 16), (2, 16), (8, 32), (100, 400)])
def test_work_is_divided_by_the_cores(cores: int, partitions: int) -> None:
    assert shuffle_partitions(cores) == partitions
