"""The page of the peers is made from a run's document alone."""

from __future__ import annotations

import re
from dataclasses import asdict

from bench.page_part import PAGE
from bench.peers.page import PART, section
from bench.rounds import Figure

MACHINE = {
    "date": "2026-11-25T12:00:00+00:00",
    "version": "0.2.0",
    "versions": {"flink": "2.1.1", "connect": "4.3.1", "iceberg": "1.11.0"},
    "cores": 2,
    "memory_gib": 23.0,
    "load": [2.5, 2.0, 1.0],
    "seconds": 1200.0,
}


def figure(way: str, cpu: float, *, number: int = 0, is_cold: bool = False, rows: int = 1_000_000) -> dict[str, object]:
    return asdict(Figure(way, number, rows, 4.0, cpu, {"jvm": cpu}, {}, {"python": 1.0, "jvm": 1.0}, is_cold))


def test_a_run_becomes_a_table_a_comparison_and_what_is_left_out() -> None:
    orders = [
        figure("flink", 8.0),
        figure("flink", 17.0, is_cold=True),
        figure("ours_as_spike", 6.0),
        figure("ours", 7.0),
    ]
    races = {"nested_avro": orders, "nested_protobuf": [figure("ours", 4.0, rows=300_000)]}
    lines = section({"machine": MACHINE, "races": races}).splitlines()
    assert lines[0].startswith("One `make bench-peers` on 2 cores (23.0 GiB), 2026-11-25: 20 minutes, load average 2.5")
    assert "| **nested orders, Avro**: Flink SQL, four metadata columns | 8.0 | 4.0 | 250,000 | 17.0 | 4.0 |" in lines
    assert "| Frazil, four metadata columns | 6.0 | 4.0 | 250,000 | – | – |" in lines
    assert any(line.startswith("| **nested orders, Protobuf**: Flink SQL | cannot: ") for line in lines)
    (said,) = (line for line in lines if line.startswith("- nested orders, Avro: "))
    assert "with the same four columns, Frazil's CPU is 0.75 of that of Flink SQL." in said
    assert said.endswith("With its eight columns it is 0.88 of that of Flink SQL with four.")
    assert "What the figures do not say:" in lines


def test_the_page_has_the_part() -> None:
    page = PAGE.read_text()
    assert page.count(PART.begin) == page.count(PART.end) == 1


def test_the_readme_quotes_the_page() -> None:
    said = re.findall(
        r"- ([^:|]+): with the same four columns, Frazil's CPU is ([\d.]+) of that of Flink SQL and ([\d.]+) of that of Kafka Connect",
        PAGE.read_text(),
    )
    assert said
    readme = PAGE.parents[1].joinpath("README.md").read_text()
    assert [" | ".join(row) for row in said if f"| {' | '.join(row)} |" not in readme] == []
    shares = re.findall(r"With its eight columns it is ([\d.]+) of that of Flink SQL", PAGE.read_text())
    assert f"Flink's CPU are {', '.join(shares[:-1])} and {shares[-1]}." in readme
