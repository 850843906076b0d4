"""The part of the peers' page about state tables is made from a run's document alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bench.peers.page import section
from bench.peers.state_page import state_section
from bench.peers.state_race import StateFigure
from bench.peers.state_topics import Changes

CHANGES = Changes(load=297_000, updates=24_300, inserts=3_000, deletes=2_700, live=297_300, ids=1)


def figures(way: str, *, cpu: float, refused: str = "") -> list[dict[str, Any]]:
    found = [
        StateFigure(way, "load", 0, 4.0, 5 * cpu, 10_000_000),
        StateFigure(way, "batch", 0, 2.0, cpu, 1_500_000, 327_000),
        StateFigure(way, "spark", 0, 1.0, cpu / 2),
        StateFigure(way, "duckdb", 0, 0.5, 0.25),
        StateFigure(way, "pyiceberg", 0, refused=refused) if refused else StateFigure(way, "pyiceberg", 0, 1.0, 0.5),
    ]
    return [asdict(figure) for figure in found]


def test_a_race_of_state_tables_becomes_a_table_and_what_it_says_of_the_others() -> None:
    flink = figures("flink_upsert", cpu=4.0, refused="equality deletes are not supported: https://an.issue")
    document = {"changes": asdict(CHANGES), "figures": [*flink, *figures("frazil_state", cpu=2.0)]}
    lines = state_section(document)
    assert "### State tables" in lines
    assert any("30,000 records: 24,300 updates, 3,000 inserts and 2,700 deletes" in line for line in lines)
    assert any("which leave 297,300 rows. Medians of 1 counted round." in line for line in lines)
    assert (
        "| Flink SQL: upserts by equality deletes | 20.00 | 4.00 | 4.00 | 2.00 | 1.5 | 327,000 | 2.00 | 0.25 | cannot |"
        in lines
    )
    assert "| Frazil: `Upsert()` | 10.00 | 4.00 | 2.00 | 2.00 | 1.5 | 327,000 | 1.00 | 0.25 | 0.50 |" in lines
    assert not any(line.startswith("| Spark, by hand") for line in lines)
    assert "- PyIceberg cannot read the table of Flink SQL: “equality deletes are not supported”" in lines
    assert any("issues/17542" in line for line in lines)


def test_a_run_of_state_tables_alone_has_a_page_and_one_without_them_lacks_the_part() -> None:
    document = {"changes": asdict(CHANGES), "figures": figures("frazil_state", cpu=2.0)}
    assert "### State tables" in section({"machine": {}, "races": {}, "state": document})
    assert state_section(None) == []
