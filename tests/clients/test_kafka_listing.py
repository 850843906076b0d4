"""A sample is the oldest and the newest offsets of all partitions, and reads no offset twice."""

from __future__ import annotations

import pytest

from frazil.clients.kafka_listing import sampled_spans


@pytest.mark.parametrize(
    ("spans", "count", "oldest", "newest"),
    [
        ({0: (5, 105)}, 10, {0: (5, 10)}, {0: (100, 105)}),
        ({0: (5, 8)}, 10, {}, {0: (5, 8)}),
        ({0: (0, 100), 1: (50, 52)}, 10, {0: (0, 4)}, {0: (96, 100), 1: (50, 52)}),
        ({0: (0, 9), 1: (0, 9), 2: (0, 9)}, 1, {}, {0: (8, 9), 1: (8, 9), 2: (8, 9)}),
        ({0: (0, 9)}, 5, {0: (0, 2)}, {0: (6, 9)}),
        ({}, 5, {}, {}),
    ],
)
def test_each_partition_has_its_share(
    spans: dict[int, tuple[int, int]],
    count: int,
    oldest: dict[int, tuple[int, int]],
    newest: dict[int, tuple[int, int]],
) -> None:
    assert sampled_spans(spans, count) == (oldest, newest)
