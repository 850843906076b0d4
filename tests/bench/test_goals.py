"""The arithmetic behind the bench's verdicts."""

from __future__ import annotations

import pytest

from bench.goals import Goal, Results, goals
from bench.latency import Followed
from bench.rounds import Figure, middle, ratio


def figure(way: str, number: int, *, wall: float = 1.0, cpu: float = 1.0, rows: int = 1_000_000) -> Figure:
    return Figure(way, number, rows, wall, cpu, {"jvm": cpu, "broker": 0.1}, {"python": 120.0, "jvm": 900.0})


def verdicts(results: Results) -> dict[str, str]:
    return {goal.says: goal.verdict for goal in goals(results)}


def test_a_ratio_is_taken_within_a_round_and_summed_up_by_the_median() -> None:
    quiet, busy = (1.0, 2.0), (9.0, 18.0)  # the machine was busy in the second round, for both alike
    figures = [figure("ours", n, cpu=pair[0]) for n, pair in enumerate((quiet, busy, quiet))]
    figures += [figure("spike", n, cpu=pair[1]) for n, pair in enumerate((quiet, busy, quiet))]
    assert ratio(figures, "ours", "spike", "cpu") == 0.5


def test_a_ratio_needs_everyone_it_speaks_of() -> None:
    assert ratio([figure("ours", 0)], "ours", "spike", "cpu") is None
    assert ratio([figure("ours", 0)], "spike", "ours", "cpu") is None
    assert middle([figure("ours", 0)], "spike", "wall") is None


def test_rounds_of_different_number_are_not_compared_in_silence() -> None:
    with pytest.raises(ValueError, match="shorter"):
        ratio([figure("ours", 0), figure("ours", 1), figure("spike", 0)], "ours", "spike", "cpu")


@pytest.mark.parametrize(
    ("value", "is_least", "verdict"),
    [
        (1.0, False, "met"),
        (1.01, False, "missed"),
        (1.0, True, "met"),
        (0.99, True, "missed"),
        (None, True, "not measured"),
    ],
)
def test_a_bound_itself_meets_the_goal(value: float | None, is_least: bool, verdict: str) -> None:
    assert Goal("", value, 1.0, is_least).verdict == verdict


def test_what_did_not_run_is_not_measured_rather_than_met() -> None:
    assert set(verdicts(Results()).values()) == {"not measured"}


def test_each_goal_is_judged_by_its_own_figures() -> None:
    ages = [1.0] * 100 + [0.1] * 100 + [0.5] * 700 + [0.11] * 100  # the first hundred warm up
    looks = [
        {"commit": n, "java_planning_seconds": 0.02 if n < 500 else 0.03, "metadata_bytes": 1000}
        for n in range(105, 1001, 5)
    ]
    memory = {"python": 310.0}
    results = Results(
        races={
            "nested_avro": [
                figure("spike", 0, cpu=10),
                figure("ours_as_spike", 0, cpu=9),
                figure("ours", 0, cpu=13),
                figure("filtered", 0, cpu=14),
                figure("selected", 0, cpu=14),
                figure("masked", 0, cpu=14),
            ],
            "nested_protobuf": [figure("ours", 0, cpu=19)],
            "keyed_avro": [figure("ours", 0, wall=10), figure("state", 0, wall=12)],
            "changes_avro": [figure("changelog", 0, wall=10), figure("state", 0, wall=17)],
            "light_json": [figure("n0", 0, wall=13), figure("n1", 0, wall=2), figure("ours", 0, wall=1)],
        },
        fast=Followed(0.2, [1.0, 1.2, 9.0], 0.5, 5.0, memory),
        usual=Followed(2.0, [1.0, 5.5], 0.01, 20.0, memory),
        commits={"commits": ages, "looks": looks, "peak_rss_mb": memory},
        many={
            "measured": [{"way": "alone", "wall": 30.0}, {"way": "together", "wall": 9.0}],
            "peak_rss_mb": memory,
        },
        fresh={"shell": [8.0, 9.1, 8.9], "first": [4.0, 5.1, 9.0]},
        partitions={
            "batches": [{"wall": 29.0, "files": 8}, {"wall": 4.0, "files": 21}, {"wall": 6.0, "files": 8}],
            "landings": [{"cpu": {"jvm": cpu, "broker": 9.0}} for cpu in (10.0, 12.0, 10.0, 14.0, 10.0, 12.5)],
        },
        upserts={
            "batches": [
                {"of": of * 1_000_000, "version": version, "round": n, "way": way, "wall": wall, "bytes": written}
                for of, version, walls, size in ((1, 2, (3.0, 1.0), 24), (1, 3, (2.0, 2.5), 25), (5, 2, (8.0,), 101))
                for n, merge in enumerate(walls)
                for way, wall, written in (("merge", merge, size), ("ours", 1.0, 1))
            ]
            + [
                {"of": of * 1_000_000, "version": version, "round": n, "way": "indexed", "wall": wall, "bytes": 1}
                for of, version, first, walls in (
                    (1, 2, 1, (1.2, 0.8)),
                    (20, 2, 0, (9.0, 1.2)),
                    (1, 3, 1, (1.0, 1.0)),
                    (20, 3, 0, (1.0,)),
                )
                for n, wall in enumerate(walls, first)
            ]
            + [{"of": 5_000_000, "version": 2, "round": 0, "way": "staged", "wall": 11.9, "bytes": 1}],
            "peak_rss_mb": {"python": 100.0},
        },
        aging=[
            {
                "version": 2,
                "commits": [1.0] * 15 + [2.0] * 10,
                "compacted": [],
                "aged": {"duckdb": 0.3, "pyiceberg": 1.3, "planning": 1.2},
                "fresh": {"duckdb": 0.2, "pyiceberg": 1.0, "planning": 1.0},
                "peak_rss_mb": {"python": 100.0},
            }
        ],
    )
    assert list(verdicts(results).values()) == [
        "met",  # 9 of 10
        "missed",  # 13 of 10
        *("met", "met", "met"),  # 14 of 13
        "missed",  # 19 of 13
        "met",  # 13 times N0
        "missed",  # twice N1
        "not measured",
        "not measured",
        "met",  # 1.2 s
        "met",  # 1 %
        "missed",  # 5.5 s
        "met",  # 0.11 to 0.1
        "missed",  # planning half as long again
        "met",
        "missed",  # 310 MB
        "met",  # 9 of 30
        *("met", "missed"),  # 8.9 s, 5.1 CPU-s
        "met",  # 1.25
        "met",  # 29 s
        "missed",  # 6 s
        "missed",  # 21 files
        *("missed", "missed"),  # 3 and 1 times; 24 times the bytes
        *("met", "met"),  # 2 and 2.5 times
        *("met", "met", "missed"),  # of 5 million rows; staged 11.9 times
        *["not measured"] * 7,
        "met",  # with an index: 1.2 s for 20 million rows, 1.0 s for one million
        "not measured",  # its first batch does not count
        "met",  # 1.2 times an append
        "missed",  # 1.7 times a changelog
        *("missed", "met", "met", "missed"),  # 1.5, 1.3, 1.2, and twice the seconds
        *["not measured"] * 4,
    ]


def test_few_commits_say_nothing_about_age() -> None:
    results = Results(commits={"commits": [0.1] * 250, "looks": [], "peak_rss_mb": {"python": 1.0}})
    assert [v for says, v in verdicts(results).items() if "commits," in says] == ["not measured"] * 3


def test_very_many_commits_have_goals_of_their_own() -> None:
    ages = [9.0] * 400 + [1.0] * 100 + [5.0] * 9_400 + [1.1] * 100
    looks = [
        {"commit": n, "java_planning_seconds": 0.061, "metadata_bytes": 19_900_000} for n in (105, 9_900, 9_905, 10_000)
    ]
    found = {"commits": ages, "looks": looks, "peak_rss_mb": {"python": 1.0}}
    mine = {
        says: v for says, v in verdicts(Results(commits=found)).items() if "401-500" in says or "at the end" in says
    }
    assert list(mine.values()) == ["met", "met"]
    assert verdicts(Results(commits=found))["... planning, median of the last 100"] == "missed"
    fewer = {**found, "commits": ages[1:]}
    assert not any("401-500" in says for says in verdicts(Results(commits=fewer)))
