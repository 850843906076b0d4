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
    return asdict(Figure(way, number, rows, 4.0, cpu, {"jvm": cpu}, {"python": 1.0, "jvm": 1.0}, is_cold))


def test_a_run_becomes_a_table_a_comparison_and_what_is_left_out() -> None:
    orders = [
        figure("flink", 8.0),
        figure("flink", 17.0, is_cold=True),
        figure("ours_as_spike", 6.0),
        figure("ours", 7.0),
        figure("flink_bare", 5.0),
        figure("flink_bare", 9.0, is_cold=True),
    ]
    races = {"nested_avro": orders, "nested_protobuf": [figure("ours", 4.0, rows=300_000)]}
    lines = section({"machine": MACHINE, "races": races}).splitlines()
    assert lines[0].startswith("`make bench-peers`, 2 cores, 23.0 GiB, 2026-11-25: 20 minutes, load average 2.5")
    assert "| nested orders, Avro (1,000,000) | 8.0, 250,000 (17.0, 4.0) | – | 6.0, 250,000 | 7.0, 250,000 |" in lines
    assert "| nested orders, Protobuf (300,000) | cannot | cannot | – | 13.3, 75,000 |" in lines
    assert "- nested orders, Avro, by Flink SQL without metadata columns: 5.0, 250,000 (9.0, 4.0)." in lines
    assert any(line.startswith("- nested orders, Protobuf, by Kafka Connect: Confluent's converter") for line in lines)
    assert "| nested orders, Avro | 0.75 | – | 0.88 |" in lines
    assert "What the figures do not say:" in lines


def test_the_page_has_the_part() -> None:
    page = PAGE.read_text()
    assert page.count(PART.begin) == page.count(PART.end) == 1


def test_the_readme_quotes_the_page() -> None:
    _, _, table = PAGE.read_text().partition("| Frazil's CPU, as a share of that of |")
    said = re.findall(r"^\| ([^|]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", table.partition("\n\n")[0], re.MULTILINE)
    assert said
    readme = PAGE.parents[1].joinpath("README.md").read_text()
    assert [row for row in said if f"| {' | '.join(row[:3])} |" not in readme] == []
    shares = [row[3] for row in said]
    assert f"Flink's CPU are {', '.join(shares[:-1])} and {shares[-1]}." in readme
