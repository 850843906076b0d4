"""The proof of a run: read as written, under a key that its name gives."""

from __future__ import annotations

import pytest

from frazil.declaration import InvalidDeclaration
from frazil.rollout.run_proof import Driver, Reached, RunName, parse_proof, proof_prefix
from tests.support.rollout_world import desired


@pytest.mark.parametrize("job", ["orders", "ingest-payments", "a1-2-3"])
def test_a_runs_name_gives_job_generation_and_digest(job: str) -> None:
    wanted = desired(12, job=job)
    name = RunName.of(f"{wanted.run_prefix}{'0f' * 16}")
    assert name is not None
    assert (name.job, name.generation, name.digest) == (job, 12, wanted.digest[:8])
    assert name.proof_key.startswith(f"{proof_prefix(job)}{wanted.run_prefix}")


@pytest.mark.parametrize("run", ["0f" * 16, "", "orders-0-aaaaaaaa-1", "orders-1-aaaaaaa-1", "Orders-1-aaaaaaaa-1"])
def test_a_run_that_no_reconciler_started_has_no_such_name(run: str) -> None:
    assert RunName.of(run) is None


def test_what_is_written_is_read() -> None:
    name = RunName.of(f"{desired(3).run_prefix}0f")
    assert name is not None
    driver = Driver(runtime={"python": "3.11.9"}, missing={"tables": "not found"})
    for found in (None, driver):
        proof = name.proof({"orders": Reached.COMMITTED, "users": Reached.NOTHING}, at_ms=7, driver=found)
        assert parse_proof(proof.document()) == proof


def test_a_proof_of_an_earlier_release_says_nothing_of_its_driver() -> None:
    proof = parse_proof(b'{"version":1,"run":"a","generation":1,"digest":"aaaaaaaa","at_ms":1,"pipelines":{}}')
    assert proof.driver is None


def test_a_proof_that_says_something_else_is_refused() -> None:
    with pytest.raises(InvalidDeclaration, match="pipelines"):
        parse_proof(
            b'{"version":1,"run":"a","generation":1,"digest":"aaaaaaaa","at_ms":1,"pipelines":{"orders":"maybe"}}'
        )
