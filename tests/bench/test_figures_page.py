"""The figures of the page are made from a run's document alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bench.figures_page import FIGURES, LARGE, UPSERTS, figures, large, upserts
from bench.goals import Results, goals
from bench.page_part import PAGE
from bench.report import document
from tests.bench.test_goals import figure

MACHINE = {"date": "2026-11-25T12:00:00+00:00", "cores": 2, "memory_gib": 23.0, "seconds": 600.0, "load": [2.0, 8.0]}


def batch(way: str, number: int, wall: float) -> dict[str, Any]:
    cpu = {"jvm": wall * 2, "broker": 9.0}
    return {"of": 5_000_000, "version": 2, "round": number, "way": way, "wall": wall, "cpu": cpu, "bytes": 1_000_000}


def test_a_run_becomes_its_races_and_the_goals_that_it_measured() -> None:
    races = {"nested_avro": [figure(way, 0, cpu=cpu, wall=2.0) for way, cpu in (("spike", 10), ("ours", 13))]}
    results = Results(races=races, fresh={"shell": [9.5, 9.6], "first": [13.0]})
    written = figures(document(results, goals(results), MACHINE)).splitlines()
    assert written[0].startswith("`make bench`, 2 cores, 23.0 GiB, 2026-11-25: 10.0 minutes, load average 2.0")
    assert "| nested orders, Avro (1,000,000): spike | 10.00 | 500,000 |" in written
    assert "| Frazil | 13.00 | 500,000 |" in written
    assert "| nested Avro orders, CPU: Frazil in the default layout / spike | **1.30** | ≤ 1.25 |" in written
    assert not any("not measured" in line for line in written)
    assert "| `frazil run` of a small topic from the shell: median | **9.55 s** | ≤ 9.00 s |" in written


def test_batches_become_medians_and_ratios_within_their_round() -> None:
    batches = [batch(way, n, wall) for n in (0, 1) for way, wall in (("ours", 1.0 + n), ("merge", 8.0 + 8 * n))]
    batches += [batch("staged", 0, 30.0)]
    written = upserts({"machine": MACHINE, "upserts": {"batches": batches}}).splitlines()
    assert written[-1] == "| 5 M, v2 | 3.0, 1.5, 1.0 | 24.0, 12.0, 1.0: 8.00 and 1.00 | 60.0, 30.0, 1.0: 30.00 |"


def test_the_round_in_which_an_index_had_no_commit_to_follow_is_no_figure() -> None:
    batches = [batch(way, n, wall) for n in (0, 1, 2) for way, wall in (("ours", 1.0), ("indexed", 0.1 + n))]
    written = upserts({"machine": MACHINE, "upserts": {"batches": batches}}).splitlines()
    assert written[-1].endswith("| 3.2, 1.6, 1.0: 1.60 |")


def test_an_index_that_followed_no_commit_has_no_figures() -> None:
    batches = [batch("ours", 0, 1.0), batch("indexed", 0, 0.1)]
    assert upserts({"machine": MACHINE, "upserts": {"batches": batches}}).endswith("| 2.0, 1.0, 1.0 | – |")


def test_a_run_of_large_tables_has_its_ratios_and_its_other_goals() -> None:
    batches = [{**batch(way, 0, wall), "of": 20_000_000} for way, wall in (("ours", 1.0), ("merge", 21.0))]
    results = Results(upserts={"batches": batches, "peak_rss_mb": {"python": 1.0}})
    written = large(document(results, goals(results), MACHINE)).splitlines()
    assert "| 20 M, v2 | 2.0, 1.0, 1.0 | 42.0, 21.0, 1.0: 21.00 and 1.00 |" in written
    assert written[-1] == "| the driver's Python, peak memory | 1 MB | ≤ 300 MB |"


def test_the_page_has_all_parts() -> None:
    page = PAGE.read_text()
    for part in (FIGURES, UPSERTS, LARGE):
        assert part.replaced(page, "new").count(f"{part.begin}\nnew\n{part.end}") == 1


def test_a_goal_of_a_document_is_the_one_that_was_judged() -> None:
    results = Results(fresh={"shell": [9.5], "first": [4.0]})
    kept = document(results, goals(results), {})["goals"]
    assert [{k: v for k, v in goal.items() if k != "verdict"} for goal in kept] == [asdict(g) for g in goals(results)]
