"""Names of runs sort by their time, so that the newest proofs are the last ones of a listing."""

from __future__ import annotations

from frazil.job.session import run_name
from frazil.rollout.run_proof import RunName
from tests.support.rollout_world import desired


def test_names_sort_by_time_and_differ_at_one_time() -> None:
    prefix = desired(3).run_prefix
    times = (0.001, 1_700_000_000.0, 1_700_000_000.001, 1_800_000_000.0, 17_000_000_000.0)
    names = [run_name(prefix, now=now, unique_id="f" * 32) for now in times]
    assert names == sorted(names)
    assert run_name(prefix, now=1.0, unique_id="a" * 32) != run_name(prefix, now=1.0, unique_id="b" * 32)
    parsed = RunName.of(names[1])
    assert parsed is not None
    assert (parsed.generation, len(names[1]) - len(prefix)) == (3, 32)
