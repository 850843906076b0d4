"""The default plan of a run: which contenders land which shape, and how many records."""

from __future__ import annotations

from collections.abc import Sequence

from bench.rounds import Race

RACES = (  # in this order most contenders are there from the race before
    Race(
        shape="nested_avro",
        ways=("spike", "ours_as_spike", "ours", "filtered", "selected", "masked"),
        rows=1_000_000,
        warm_rows=100_000,
        rounds=2,
    ),
    Race(shape="wide_avro", ways=("spike", "ours"), rows=150_000, warm_rows=30_000, rounds=2),
    Race(shape="nested_protobuf", ways=("ours",), rows=1_000_000, warm_rows=100_000, rounds=2),
    Race(shape="light_json", ways=("n0", "n1", "ours"), rows=200_000, warm_rows=60_000, rounds=2),
    Race(shape="nested_json", ways=("n0", "n1", "ours"), rows=200_000, warm_rows=60_000, rounds=2),
)
INITIAL_LOAD = Race(shape="keyed_avro", ways=("ours", "state"), rows=500_000, warm_rows=100_000, rounds=2)
"""A part of `upserts`: a topic of as many keys as records, into an append table and into one of current state."""
CHANGES = Race(shape="changes_avro", ways=("changelog", "state"), rows=1_000_000, warm_rows=100_000, rounds=2)
"""A part of `upserts`: Debezium's changes of 100,000 rows, into a table of every change and into one of current state."""
UPSERTS = {1_000_000: 2}
"""Rounds of batches of random changes, by the rows of the table."""
MANY_ROWS = {5_000_000: 2, 20_000_000: 3}
"""The first of three is not compared for the index, which has no commit to follow there."""
COMMITS = 300
"""The least number whose last hundred can be compared with the second."""
CAPTIONS = {
    "n0": "N0",
    "n1": "N1",
    "spike": "spike",
    "ours_as_spike": "Frazil, the spike's columns",
    "ours": "Frazil",
    "filtered": "Frazil, with a condition",
    "selected": "Frazil, with a condition and ten selected columns",
    "masked": "Frazil, with an HMAC of one column",
    "state": "Frazil, an upsert table",
    "changelog": "Frazil, a table of every change",
}
"""The contenders, in the order of the page."""
OTHERS = ("follow", "many", "fresh", "upserts")
ASKED_FOR = ("small", "routes", "patterns", "commits", "partitions", "aging", "requests")
"""All need minutes: `make bench` is to end within 20."""


def chosen(
    races: Sequence[Race], *, shapes: Sequence[str], ways: Sequence[str], scale: float, rounds: int
) -> list[Race]:
    """Select the races of the named shapes and contenders, all by default. `scale` multiplies sizes; `rounds` applies if not 0."""
    kept = [race.only(ways) for race in races if not shapes or race.shape in shapes]
    return [race.sized(scale, rounds) for race in kept if race.ways]
