"""The proofs of a job's runs, as they are stored."""

from __future__ import annotations

from collections.abc import Iterator

from frazil.errors import InvalidInput
from frazil.rollout.run_proof import RunProof, parse_proof, proof_prefix
from frazil.rollout.state import Store


def stored_proofs(store: Store, job: str, run_prefix: str = "") -> Iterator[RunProof]:
    """Yield the proofs of the runs whose names begin so, the last name first: names of one generation are in order of time.

    A proof that cannot be read is left out: it shows nothing, and a release that writes such proofs must not keep itself.
    """
    for key in reversed(store.keys(f"{proof_prefix(job)}{run_prefix}")):
        held = store.read(key)
        if held is None:
            continue
        try:
            yield parse_proof(held.data)
        except InvalidInput:
            continue
