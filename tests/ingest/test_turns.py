"""More pipelines than a drain lands at once: each has its turn, whatever the others have waiting."""

from __future__ import annotations

from frazil.declaration import Pipeline, Table, Topic
from frazil.ingest.runner import UNKNOWN, Turn, in_turn

NAMES = ("a", "b", "c", "d")
PIPELINES = [Pipeline(topic=Topic(name, value="text"), table=Table(f"s.{name}")) for name in NAMES]


def order(**turns: Turn) -> list[str]:
    return [pipeline.name for pipeline in in_turn(PIPELINES, turns)]


def waiting(since_ms: int) -> Turn:
    return Turn(is_idle=False, committed_at_ms=since_ms)


def test_the_longest_wait_comes_first_and_who_has_no_records_last() -> None:
    idle = Turn(is_idle=True, committed_at_ms=1)
    assert order(a=idle, b=waiting(30), c=waiting(20), d=UNKNOWN) == ["d", "c", "b", "a"]


def test_with_equal_turns_the_declared_order_stays() -> None:
    assert order(a=UNKNOWN, b=UNKNOWN, c=UNKNOWN, d=UNKNOWN) == list(NAMES)


def test_no_pipeline_starves_though_the_others_always_have_more_to_land() -> None:
    """Each run has time for two pipelines, and all four always have records waiting."""
    committed = dict.fromkeys(NAMES, 0)
    landed = dict.fromkeys(NAMES, 0)
    for run in range(1, 9):
        for name in order(**{name: waiting(at) for name, at in committed.items()})[:2]:
            committed[name], landed[name] = run, landed[name] + 1
    assert set(landed.values()) == {4}
