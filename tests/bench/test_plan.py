"""Which contenders a run has."""

from __future__ import annotations

from bench.plan import RACES, chosen


def ways(*named: str) -> tuple[str, ...]:
    return chosen(RACES, shapes=["nested_avro"], ways=named, scale=1, rounds=0)[0].ways


def test_parts_of_frazil_run_only_if_they_are_named() -> None:
    assert ways() == ("spike", "ours_as_spike", "ours")
    assert ways("files", "ours") == ("ours", "files")
